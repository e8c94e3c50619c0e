//! What is asked about a term: to extend it, to give it back, to ask its holder, to read it.

use super::entry::Entry;
use super::round::{Decide, Decision, Floor, Seen};
use crate::{
    Ask, Asked, Attempt, Fault, FencingToken, Incarnation, Lease, LeaseName, Occupancy, Release, Released,
    Renew, Renewed, StoreError, Wish,
};

impl Decide for Renew {
    type Answered = Renewed;

    const FLOOR: Floor = Floor::Unwanted;

    fn lease_name(&self) -> &LeaseName {
        &self.name
    }

    /// That nobody else has written since is what makes it safe, and needs no clock. A term that this
    /// observer itself has seen expire is not revived all the same: the contract says so, and its holder
    /// believes no more.
    fn decide(&self, seen: Option<&Seen>, _token_floor: u64) -> Decision<Renewed> {
        let Some(seen) = seen else {
            return Decision::Answer(Renewed::Lost(None));
        };
        let Seen { entry, lease, .. } = seen;
        if let Some(error) = is_behind(entry, &self.name, self.incarnation, self.token, self.attempt) {
            return Decision::Refuse(error);
        }
        if !is_term(entry, self.incarnation, self.token, self.attempt) || lease.occupancy() != Occupancy::Held
        {
            return Decision::Answer(Renewed::Lost(Some(Box::new(lease.clone()))));
        }
        let wish = match entry.asked_to_step_down {
            true => Wish::StepDown,
            false => Wish::Nothing,
        };
        let extended = Renewed::Extended { ttl: self.ttl, wish };
        Decision::Write(seen.extended(self.ttl), extended)
    }
}

impl Decide for Release {
    type Answered = Released;

    const FLOOR: Floor = Floor::Unwanted;

    fn lease_name(&self) -> &LeaseName {
        &self.name
    }

    fn decide(&self, seen: Option<&Seen>, _token_floor: u64) -> Decision<Released> {
        let Some(Seen { entry, lease, .. }) = seen else {
            return Decision::Answer(Released::NotYours(None));
        };
        if let Some(error) = is_behind(entry, &self.name, self.incarnation, self.token, self.attempt) {
            return Decision::Refuse(error);
        }
        if !is_term(entry, self.incarnation, self.token, self.attempt) {
            return Decision::Answer(Released::NotYours(Some(Box::new(lease.clone()))));
        }
        if entry.released {
            return Decision::Answer(Released::Vacated);
        }
        let vacant = Entry {
            released: true,
            ..entry.clone()
        };
        Decision::Write(vacant, Released::Vacated)
    }
}

impl Decide for Ask {
    type Answered = Asked;

    const FLOOR: Floor = Floor::Unwanted;

    fn lease_name(&self) -> &LeaseName {
        &self.name
    }

    fn decide(&self, seen: Option<&Seen>, _token_floor: u64) -> Decision<Asked> {
        let Some(Seen { entry, lease, .. }) = seen else {
            return Decision::Answer(Asked::NotHeld);
        };
        if entry.token != self.token || lease.occupancy() != Occupancy::Held {
            return Decision::Answer(Asked::NotHeld);
        }
        if entry.asked_to_step_down {
            return Decision::Answer(Asked::Noted);
        }
        let asked = Entry {
            asked_to_step_down: true,
            ..entry.clone()
        };
        Decision::Write(asked, Asked::Noted)
    }
}

impl Decide for LeaseName {
    type Answered = Option<Lease>;

    const FLOOR: Floor = Floor::Unwanted;

    fn lease_name(&self) -> &LeaseName {
        self
    }

    fn decide(&self, seen: Option<&Seen>, _token_floor: u64) -> Decision<Option<Lease>> {
        Decision::Answer(seen.map(|seen| seen.lease.clone()))
    }
}

/// Tokens only rise: a lower one of another term is of an old record, as a server shows it that is behind, or
/// that has lost what came after. It says nothing of the term, neither that it is lost nor that there is
/// nothing to give back.
fn is_behind(
    entry: &Entry,
    name: &LeaseName,
    incarnation: Incarnation,
    token: FencingToken,
    attempt: Attempt,
) -> Option<StoreError> {
    let is_of_another = (entry.holder.incarnation, entry.attempt) != (incarnation, attempt);
    (entry.token < token && is_of_another).then(|| {
        let message = format!(
            "lease \"{name}\": the store shows the record of token {}, which is older than this term of {token}; it is \
             behind, or has lost what it confirmed",
            entry.token
        );
        StoreError::not_applied(Fault::Unreachable, message)
    })
}

fn is_term(entry: &Entry, incarnation: Incarnation, token: FencingToken, attempt: Attempt) -> bool {
    (entry.holder.incarnation, entry.token, entry.attempt) == (incarnation, token, attempt)
}
