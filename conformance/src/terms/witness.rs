//! Sees every term of one lease, and remembers all tokens.

use super::faults::Faults;
use super::{Campaign, Promise, Seen};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Attempt, FencingToken, Incarnation, Lease};

#[derive(Default)]
pub(super) struct Witness {
    terms: u64,
    /// How many there were when nothing was done to the deployment any more.
    healed_after: Option<u64>,
    pub(super) unknown: u64,
    late: u64,
    again: u64,
    renewed: u64,
    duplicate_tokens: u64,
    tokens: BTreeMap<FencingToken, (Incarnation, Attempt)>,
    /// Who believes, and until when.
    holder: Option<(Incarnation, Instant)>,
    /// Of tokens.
    violations: Vec<String>,
    /// Of exclusion: whether they count is a matter of what the deployment promises.
    not_excluded: Vec<String>,
}

/// A grant as it arrived.
#[derive(Clone, Copy)]
pub(super) struct Arrived {
    pub(super) token: FencingToken,
    pub(super) again: bool,
    /// The highest token that anybody had seen when the attempt's first request was sent.
    pub(super) above: Option<FencingToken>,
    pub(super) ends: Instant,
}

impl Witness {
    /// Adds what another has seen.
    pub(super) fn add(&mut self, other: &Mutex<Self>) {
        let other = other.lock().unwrap_or_else(PoisonError::into_inner);
        self.terms += other.terms;
        self.unknown += other.unknown;
        self.late += other.late;
        self.again += other.again;
        self.renewed += other.renewed;
        self.duplicate_tokens += other.duplicate_tokens;
        self.violations.extend(other.violations.iter().cloned());
        self.not_excluded.extend(other.not_excluded.iter().cloned());
    }

    pub(super) fn violate(&mut self, violation: String) {
        self.violations.push(violation);
    }

    /// Nothing is done to the deployment any more.
    pub(super) fn heal(&mut self) {
        self.healed_after = Some(self.terms);
    }

    /// Whether a term has begun since then.
    pub(super) fn has_led_since(&self) -> bool {
        self.healed_after.is_some_and(|terms| self.terms > terms)
    }

    /// The highest token that was seen.
    pub(super) fn highest(&self) -> Option<FencingToken> {
        self.tokens.last_key_value().map(|(token, _)| *token)
    }

    /// Whether a term begins with this grant: not if it is over already.
    pub(super) fn begin(&mut self, asked: &Acquire, arrived: Arrived) -> bool {
        let (now, mine) = (Instant::now(), (asked.candidate.incarnation, asked.attempt));
        let (name, token) = (&asked.name, arrived.token);
        self.again += u64::from(arrived.again);
        if arrived.above.is_some_and(|above| token <= above) {
            self.violate(format!(
                "token {token} of {name} is not above one that was given before it was asked for"
            ));
        }
        if let Some(other) = self.tokens.insert(token, mine)
            && other != mine
        {
            self.duplicate_tokens += 1;
            self.violate(format!("token {token} of {name} was given to two attempts"));
        }
        if now >= arrived.ends {
            self.late += 1;
            return false;
        }
        // Whoever believes from now on has the highest token of all.
        if self.highest() > Some(token) {
            let violation = format!("term {token} of {name} begins after a later one");
            self.not_excluded.push(violation);
        }
        if let Some((other, until)) = self.holder
            && other != mine.0
            && now < until
        {
            let left = until - now;
            let violation = format!("two believe in {name}: {other} for {left:?} more, and term {token}");
            self.not_excluded.push(violation);
        }
        self.holder = Some((mine.0, arrived.ends));
        self.terms += 1;
        true
    }

    pub(super) fn extend(&mut self, asked: &Acquire, until: Instant) {
        self.renewed += 1;
        if let Some(holder) = self.held_by(asked) {
            holder.1 = until;
        }
    }

    pub(super) fn lost(&mut self, asked: &Acquire, token: FencingToken, until: Instant, now: Option<&Lease>) {
        let (name, left) = (&asked.name, until.saturating_duration_since(Instant::now()));
        let violation = format!("term {token} of {name} was lost {left:?} before its deadline: {now:?}");
        self.not_excluded.push(violation);
    }

    /// A renewal by the token of a former term is told to have extended it.
    pub(super) fn revived(&mut self, asked: &Acquire, former: FencingToken) {
        let violation = format!("term {former} of {} was extended when it was over", asked.name);
        self.not_excluded.push(violation);
    }

    /// A release by the token of a former term is told to have given something back, while a later one is
    /// held.
    pub(super) fn vacated(&mut self, asked: &Acquire, former: FencingToken) {
        let violation = format!("term {former} of {} was given back when it was over", asked.name);
        self.not_excluded.push(violation);
    }

    pub(super) fn end(&mut self, asked: &Acquire) {
        if self.held_by(asked).is_some() {
            self.holder = None;
        }
    }

    fn held_by(&mut self, asked: &Acquire) -> Option<&mut (Incarnation, Instant)> {
        self.holder
            .as_mut()
            .filter(|holder| holder.0 == asked.candidate.incarnation)
    }

    /// What was seen in all.
    pub(super) fn told(self, campaign: &Campaign, took: Duration, faults: Faults) -> Seen {
        let mut violations = self.violations;
        let not_excluded = match campaign.promise {
            Promise::Exclusion => {
                violations.extend(self.not_excluded);
                0
            }
            Promise::Tokens => self.not_excluded.len() as u64,
        };
        Seen {
            terms: self.terms,
            leases: campaign.leases,
            took,
            has_networks: false,
            faults,
            is_harmed: false,
            unstruck: Vec::new(),
            unknown: self.unknown,
            late: self.late,
            again: self.again,
            renewed: self.renewed,
            duplicate_tokens: self.duplicate_tokens,
            not_excluded,
            violations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrived, Witness};
    use crate::asking::{request, seconds};
    use std::time::{Duration, Instant};
    use tenure_core::FencingToken;

    fn token(number: u64) -> FencingToken {
        FencingToken::new(number).expect("a token")
    }

    /// A grant that was asked for before anybody had seen a token, and is over in a minute.
    fn asked_for_first(number: u64) -> Arrived {
        Arrived {
            token: token(number),
            again: false,
            above: None,
            ends: Instant::now() + Duration::from_secs(60),
        }
    }

    /// Two terms that begin one after the other has ended, with these tokens.
    fn of_terms_in_turn(tokens: [u64; 2]) -> Witness {
        let mut witness = Witness::default();
        for (label, number) in ["first", "second"].into_iter().zip(tokens) {
            let holder = request("job-0", label, seconds(60));
            assert!(witness.begin(&holder, asked_for_first(number)));
            witness.end(&holder);
        }
        assert_eq!(witness.violations, [""; 0]);
        witness
    }

    /// Its answer was on its way while a later term began and ended: nobody else believes, and it was asked
    /// for before the later token was known.
    #[test]
    fn term_that_begins_after_a_later_one_is_told() {
        let witness = of_terms_in_turn([2, 1]);
        assert_eq!(witness.not_excluded, ["term 1 of job-0 begins after a later one"]);
    }

    #[test]
    fn term_that_begins_after_an_earlier_one_is_in_order() {
        assert_eq!(of_terms_in_turn([1, 2]).not_excluded, [""; 0]);
    }
}
