//! The store's one record, and what requests do to it: by the contract's own rules, or with a planted flaw.

use crate::configuration::{TICK, granted};
use crate::local::{another, candidate, itself, lease_name};
use crate::message::{Answer, Ask};
use crate::names::{attempt_of, small, token_of};
use tenure_conformance::model::{Record as FullRecord, Records, Slot};
use tenure_core::{Acquired, Note, Occupancy, Operation, Released, Renewed, Wish};

/// The record, without its holder. Tokens and attempts are ranks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Record {
    pub(crate) token: u8,
    /// The attempt, among those of the process that holds the lease.
    pub(crate) attempt: u8,
    /// Ticks of the store's clock until it expires; 0 if it has, or is vacant.
    pub(crate) remaining: u8,
    pub(crate) released: bool,
    pub(crate) asked: bool,
}

impl Record {
    /// The record as a number of 16 bits; not 0.
    pub(crate) fn code(self) -> u32 {
        let flags = u32::from(self.released) | u32::from(self.asked) << 1;
        u32::from(self.token) | u32::from(self.attempt) << 6 | u32::from(self.remaining) << 12 | flags << 15
    }

    /// Whether somebody holds the lease now.
    pub(crate) fn is_held(self) -> bool {
        self.remaining > 0 && !self.released
    }
}

/// Whose record it is, seen from a process that asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Whose {
    Own,
    Another,
}

/// What a request did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Applied {
    pub(crate) record: Option<Record>,
    pub(crate) whose: Whose,
    pub(crate) answer: Answer,
    /// Whether a term was granted that the same attempt had been granted before.
    pub(crate) again: bool,
}

/// A mistake of a store or of a fence, planted to prove that the model notices it. None that ships has one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flaw {
    /// A release does not look at the token nor at the attempt, only at the process.
    ReleaseIgnoresTerm,
    /// A release does not look at anything.
    ReleaseIgnoresProcess,
    /// A renewal of an expired record revives it.
    RenewalRevivesExpired,
    /// A renewal of a released record revives it.
    RenewalRevivesReleased,
    /// The same attempt is granted its term again, but not extended.
    AgainIsNotExtended,
    /// The same attempt is granted its term again after it was released.
    AgainAfterRelease,
    /// Every term has the same token.
    TokenConstant,
    /// A lease is taken though another holds it.
    TakesHeld,
    /// Who looks does not see its own lease.
    LookSeesNothing,
    /// The fence lets a term claim after a later one.
    OlderTermClaims,
    /// The fence admits every write.
    StaleTermWrites,
}

/// What a store does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) flaw: Option<Flaw>,
}

impl Rules {
    /// Applies a request.
    pub(crate) fn apply(self, ask: Ask, record: Option<Record>, whose: Whose) -> Applied {
        let (ask, before, seen_as) = self.bent(ask, record, whose);
        let kept = before.map(|before| full(before, seen_as));
        let mut records = Records::default();
        if let Some(kept) = &kept {
            let slot = Slot::Own(kept.clone());
            records.slots.insert(lease_name(), slot);
        }
        let (answer, again) = answered(&mut records, ask);
        let after = match records.slots.get(&lease_name()) {
            Some(Slot::Own(after)) => Some(after),
            Some(Slot::Foreign(_)) | None => None,
        };
        let mut applied = Applied {
            record: if after == kept.as_ref() {
                before
            } else {
                after.map(short)
            },
            whose: match after {
                Some(after) if after.holder.incarnation == itself() => Whose::Own,
                Some(_) | None => Whose::Another,
            },
            answer,
            again,
        };
        self.bend(record, whose, seen_as, before, &mut applied);
        applied
    }

    /// What the flawed store takes the request and the record for.
    fn bent(self, ask: Ask, record: Option<Record>, whose: Whose) -> (Ask, Option<Record>, Whose) {
        let (Some(flaw), Some(mut before)) = (self.flaw, record) else {
            return (ask, record, whose);
        };
        let same = matches!(ask, Ask::Renew { token, attempt } if token == before.token && attempt == before.attempt)
            && whose == Whose::Own;
        match (flaw, ask) {
            (Flaw::ReleaseIgnoresTerm | Flaw::ReleaseIgnoresProcess, Ask::Release { .. }) => {
                let ask = Ask::Release {
                    token: before.token,
                    attempt: before.attempt,
                };
                let seen_as = if flaw == Flaw::ReleaseIgnoresProcess {
                    Whose::Own
                } else {
                    whose
                };
                return (ask, record, seen_as);
            }
            (Flaw::RenewalRevivesExpired, Ask::Renew { .. }) if same && !before.released => {
                before.remaining = before.remaining.max(1);
            }
            (Flaw::RenewalRevivesReleased, Ask::Renew { .. }) if same && before.released => {
                before.released = false;
                before.remaining = 1;
            }
            (Flaw::AgainAfterRelease, Ask::Acquire { attempt })
                if before.released && whose == Whose::Own && attempt == before.attempt =>
            {
                before.released = false;
                before.remaining = 1;
            }
            (Flaw::TakesHeld, Ask::Acquire { .. }) if whose == Whose::Another => before.remaining = 0,
            _ => {}
        }
        (ask, Some(before), whose)
    }

    /// What the flawed store makes of the outcome.
    fn bend(
        self,
        record: Option<Record>,
        whose: Whose,
        seen_as: Whose,
        before: Option<Record>,
        applied: &mut Applied,
    ) {
        if seen_as != whose {
            applied.whose = whose;
        }
        let again = applied.again;
        let granted = matches!(applied.answer, Answer::Granted { .. });
        if before != record && !granted && !matches!(applied.answer, Answer::Extended { .. }) {
            applied.record = record;
        }
        match (self.flaw, &mut applied.answer, &mut applied.record) {
            (Some(Flaw::AgainIsNotExtended), Answer::Granted { .. }, Some(after)) if again => {
                after.remaining = record.map_or(0, |record| record.remaining);
            }
            (Some(Flaw::TokenConstant), Answer::Granted { token }, Some(after)) => {
                *token = 1;
                after.token = 1;
            }
            (Some(Flaw::LookSeesNothing), answer @ Answer::SawOwn { .. }, _) => *answer = Answer::SawAnother,
            _ => {}
        }
    }
}

fn milliseconds(ticks: u8) -> u64 {
    u64::try_from(TICK.as_millis()).expect("a tick is short") * u64::from(ticks)
}

/// The record as the store keeps it, at a moment when its clock shows 0.
fn full(record: Record, whose: Whose) -> FullRecord {
    FullRecord {
        holder: match whose {
            Whose::Own => candidate(itself()),
            Whose::Another => another(),
        },
        token: token_of(record.token),
        // A record that nobody's messages can refer to any more has lost its attempt.
        attempt: attempt_of(record.attempt.max(1)),
        terms: 1,
        ttl: granted(),
        began_ms: 0,
        renewed_ms: 0,
        expires_ms: milliseconds(record.remaining),
        released_ms: record.released.then_some(0),
        asked: record.asked,
        note: Note::default(),
    }
}

fn short(record: &FullRecord) -> Record {
    let released = record.released_ms.is_some();
    let remaining = if released {
        0
    } else {
        small(record.expires_ms / milliseconds(1))
    };
    Record {
        token: small(record.token.number()),
        attempt: small(record.attempt.number()),
        remaining,
        released,
        // A wish that nobody can hear any more is none.
        asked: record.asked && remaining > 0,
    }
}

fn answered(records: &mut Records, ask: Ask) -> (Answer, bool) {
    const RIGHT: &str = "the model's record is always readable";
    let mut again = false;
    let answer = match ask.operation(granted()) {
        Operation::Acquire(acquire) => match records.acquire(&acquire, 0).expect(RIGHT) {
            Acquired::Granted(grant) => {
                again = grant.again;
                let token = small(grant.token.number());
                Answer::Granted { token }
            }
            Acquired::Held(lease) => Answer::Held {
                token: small(lease.token.number()),
                remaining_ticks: small(
                    u64::try_from(lease.remaining.as_millis()).expect("short") / milliseconds(1),
                ),
            },
            Acquired::Superseded => Answer::Superseded,
        },
        Operation::Renew(renewals) => match records.renew(&renewals[0], 0).expect(RIGHT) {
            Renewed::Extended { wish, .. } => Answer::Extended {
                asked: wish == Wish::StepDown,
            },
            Renewed::Lost(lease) => Answer::Lost {
                own: lease.is_none_or(|lease| lease.holder.incarnation == itself()),
            },
        },
        Operation::Release(releases) => match records.release(&releases[0], 0).expect(RIGHT) {
            Released::Vacated => Answer::Vacated,
            Released::NotYours(_) => Answer::NotYours,
        },
        Operation::Look(name) => match records.get(&name, 0).expect(RIGHT) {
            Some(lease) if lease.holder.incarnation == itself() => Answer::SawOwn {
                token: small(lease.token.number()),
                attempt: small(lease.attempt.number()),
                held: lease.occupancy() == Occupancy::Held,
            },
            Some(_) | None => Answer::SawAnother,
        },
    };
    (answer, again)
}
