//! Taking a lease, in the order in which the contract states its rules.

use super::entry::Entry;
use super::round::{Decide, Decision, Floor, Seen};
use crate::{
    Acquire, Acquired, End, Fault, FencingToken, Grant, LeaseName, Occupancy, Predecessor, StoreError,
};
use std::cmp::Ordering;
use std::time::Duration;

impl Decide for Acquire {
    type Answered = Acquired;

    const FLOOR: Floor = Floor::Wanted;

    fn lease_name(&self) -> &LeaseName {
        &self.name
    }

    fn decide(&self, seen: Option<&Seen>, token_floor: u64) -> Decision<Acquired> {
        let Some(seen) = seen else {
            return begin(self, None, token_floor);
        };
        let recorded = seen.entry.attempt.cmp(&self.attempt);
        let mine = seen.entry.holder.incarnation == self.candidate.incarnation;
        match (seen.lease.occupancy(), mine, recorded) {
            (_, true, Ordering::Greater) | (Occupancy::Vacant, true, Ordering::Equal) => {
                Decision::Answer(Acquired::Superseded)
            }
            (Occupancy::Held, true, Ordering::Equal) => extend_again(self, seen),
            (Occupancy::Held, true, Ordering::Less)
            | (Occupancy::Expired, true, Ordering::Less | Ordering::Equal)
            | (Occupancy::Vacant, true, Ordering::Less)
            | (Occupancy::Vacant | Occupancy::Expired, false, _) => begin(self, Some(seen), token_floor),
            (Occupancy::Held, false, _) => Decision::Answer(Acquired::Held(seen.lease.clone())),
        }
    }
}

fn begin(request: &Acquire, last: Option<&Seen>, token_floor: u64) -> Decision<Acquired> {
    let name = &request.name;
    let Some(token) = FencingToken::successor(last.map(|seen| seen.entry.token), token_floor) else {
        let message = format!(
            "the tokens of lease \"{name}\" are used up at {}; use another name",
            FencingToken::MAX
        );
        return Decision::Refuse(StoreError::not_applied(Fault::Internal, message));
    };
    let terms = last.map_or(1, |seen| seen.entry.terms.saturating_add(1));
    let entry = Entry {
        holder: request.candidate.clone(),
        token,
        attempt: request.attempt,
        terms,
        ttl: request.ttl,
        renewals: 0,
        released: false,
        asked_to_step_down: false,
        note: request.note.clone(),
    };
    let grant = Grant {
        token,
        ttl: request.ttl,
        terms,
        again: false,
        predecessor: last.map(predecessor),
    };
    Decision::Write(entry, Acquired::Granted(grant))
}

/// Nobody else has written since, so the term goes on, whatever time has passed elsewhere.
fn extend_again(request: &Acquire, seen: &Seen) -> Decision<Acquired> {
    let grant = Grant {
        token: seen.entry.token,
        ttl: request.ttl,
        terms: seen.entry.terms,
        again: true,
        predecessor: None,
    };
    Decision::Write(seen.extended(request.ttl), Acquired::Granted(grant))
}

fn predecessor(last: &Seen) -> Predecessor {
    let (end, vacant_for) = match last.lease.occupancy() {
        Occupancy::Vacant => (End::Released, last.lease.renewed_ago),
        Occupancy::Expired => (
            End::Expired,
            last.lease.renewed_ago.saturating_sub(last.entry.ttl.duration()),
        ),
        // Only by a later attempt of the same process.
        Occupancy::Held => (End::Released, Duration::ZERO),
    };
    Predecessor {
        candidate: last.entry.holder.id.clone(),
        token: last.entry.token,
        end,
        vacant_for,
    }
}
