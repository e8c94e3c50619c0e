//! Which leases are on a session, as far as is known here: by which term, and by which value of their
//! holder's key.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use tenure_core::{Attempt, FencingToken, Incarnation, LeaseName};

/// Whose lease it is, and by which attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sitting {
    pub(crate) name: LeaseName,
    pub(crate) incarnation: Incarnation,
    pub(crate) attempt: Attempt,
}

/// A lease that ends with the session: one value of its holder's key.
///
/// Two of the same lease may be asked for at once, by two holders after each other or by a doubled renewal.
/// Only answers say which of them is there, so each is a member of its own.
pub(crate) struct Member {
    sitting: Sitting,
    /// The value of its holder's key, which no other member of the session has.
    pub(crate) holder: Vec<u8>,
    /// `None` as long as the answer is not there.
    put: Option<Put>,
    /// When its holder asked for it last. Its trust is over a ttl after that.
    asked: Instant,
}

/// That the holder's key was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Put {
    /// The term that it was written for.
    pub(crate) token: FencingToken,
    /// The revision that wrote it: it replaced what any earlier one had written.
    pub(crate) revision: i64,
}

impl Member {
    /// Whether this term holds the lease by it.
    fn is_term(&self, sitting: &Sitting, token: FencingToken) -> bool {
        self.put.is_some_and(|put| put.token == token) && self.sitting == *sitting
    }

    fn is_abandoned(&self, after: Duration) -> bool {
        self.asked.elapsed() >= after
    }

    /// Whether an answer said that the key was written, and before this revision.
    pub(crate) fn was_put_before(&self, revision: i64) -> bool {
        self.put.is_some_and(|put| put.revision < revision)
    }

    /// Whether it can be on no session any more, now that this term was given back.
    pub(crate) fn ended_with(&self, sitting: &Sitting, token: FencingToken) -> bool {
        match self.put {
            Some(put) => put.token <= token,
            None => self.sitting == *sitting,
        }
    }
}

/// The members of a session.
#[derive(Default)]
pub(crate) struct Attached(HashMap<LeaseName, Vec<Member>>);

impl Attached {
    pub(crate) fn admit(&mut self, sitting: &Sitting, holder: Vec<u8>) {
        let member = Member {
            sitting: sitting.clone(),
            holder,
            put: None,
            asked: Instant::now(),
        };
        self.0.entry(sitting.name.clone()).or_default().push(member);
    }

    pub(crate) fn confirm(&mut self, name: &LeaseName, holder: &[u8], put: Put) {
        let of_lease = self.0.get_mut(name).into_iter().flatten();
        for member in of_lease.filter(|member| member.holder == holder) {
            member.put = Some(put);
        }
    }

    /// The revision that wrote the holder's key last.
    pub(crate) fn last_put(&self, name: &LeaseName) -> Option<i64> {
        let of_lease = self.0.get(name).into_iter().flatten();
        of_lease
            .filter_map(|member| member.put.map(|put| put.revision))
            .max()
    }

    /// Whether the lease is here by this very term. If so, its holder has asked now.
    pub(crate) fn holds(&mut self, sitting: &Sitting, token: FencingToken) -> bool {
        let mut holds = false;
        for member in self.0.get_mut(&sitting.name).into_iter().flatten() {
            if member.is_term(sitting, token) {
                member.asked = Instant::now();
                holds = true;
            }
        }
        holds
    }

    /// Whether the lease is here by this very term, put by this revision or an earlier one, and nobody has
    /// asked for it beside that.
    pub(crate) fn holds_alone(&self, sitting: &Sitting, token: FencingToken, revision: i64) -> bool {
        let is_it = |member: &Member| {
            member.is_term(sitting, token) && member.was_put_before(revision.saturating_add(1))
        };
        let of_lease = self.0.get(&sitting.name);
        of_lease.is_some_and(|members| members.iter().all(is_it))
    }

    /// Whether the lease is here, or may be, for anybody who still trusts in it.
    pub(crate) fn has(&self, name: &LeaseName) -> bool {
        self.0.contains_key(name)
    }

    /// Keeps those members of a lease alone.
    pub(crate) fn keep(&mut self, name: &LeaseName, stays: impl Fn(&Member) -> bool) {
        if let Some(members) = self.0.get_mut(name) {
            members.retain(stays);
            if members.is_empty() {
                self.0.remove(name);
            }
        }
    }

    /// Whether there are any whose holders have not asked for so long.
    pub(crate) fn has_abandoned(&self, after: Duration) -> bool {
        self.0.values().flatten().any(|member| member.is_abandoned(after))
    }

    /// Drops those whose holders have not asked for so long; whether there were any. None of them counts as
    /// held from now on, also if its holder asks again: a request to remove its key may arrive late.
    pub(crate) fn drop_abandoned(&mut self, after: Duration) -> bool {
        let abandoned = self.has_abandoned(after);
        self.0.retain(|_, members| {
            members.retain(|member| !member.is_abandoned(after));
            !members.is_empty()
        });
        abandoned
    }
}

// No server can be made to answer the ending of a lease late, and its holder's request before that.
#[cfg(test)]
mod tests {
    use super::{Attached, Put, Sitting};
    use std::time::Duration;
    use tenure_core::{Attempt, FencingToken, Incarnation, LeaseName};

    fn sitting() -> Sitting {
        Sitting {
            name: LeaseName::new("job").expect("a name"),
            incarnation: "00000000000000000000000000000001"
                .parse::<Incarnation>()
                .expect("32 digits"),
            attempt: Attempt::FIRST,
        }
    }

    #[test]
    fn lease_that_was_abandoned_counts_as_held_by_nobody_until_its_key_is_put_anew() {
        let (sitting, token) = (sitting(), FencingToken::new(7).expect("a token"));
        let put = |revision| Put { token, revision };
        let mut attached = Attached::default();
        attached.admit(&sitting, b"first".to_vec());
        attached.confirm(&sitting.name, b"first", put(7));
        let ttl = Duration::from_secs(60);
        assert!(!attached.drop_abandoned(ttl) && attached.holds(&sitting, token));

        assert!(attached.has_abandoned(Duration::ZERO) && attached.drop_abandoned(Duration::ZERO));
        // Its holder comes back: asking does not help, and putting the key anew does.
        assert!(!attached.holds(&sitting, token) && !attached.has(&sitting.name));
        attached.admit(&sitting, b"second".to_vec());
        assert!(attached.has(&sitting.name) && !attached.holds(&sitting, token));
        attached.confirm(&sitting.name, b"second", put(8));
        assert!(attached.holds(&sitting, token) && attached.holds_alone(&sitting, token, 8));
        // A server that was put back to before that has the key of an earlier term, if any.
        assert!(!attached.holds_alone(&sitting, token, 7));
        assert!(!attached.drop_abandoned(ttl));
    }
}
