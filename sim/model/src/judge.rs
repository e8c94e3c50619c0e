//! What is right, by the record and the answers alone.

use crate::catalogue::Catalogue;
use crate::invariant::Invariant;
use crate::local::Sender;
use crate::message::{Answer, Ask};
use crate::milestone::{Milestone, Milestones};
use crate::names::Ranks;
use crate::record::{Applied, Record, Whose};
use crate::world::{Holder, World};

/// Whether whoever believes is right. A term that an operator vacated by force is the fence's business alone.
pub(crate) fn beliefs(catalogue: &Catalogue, world: &World) -> Option<Invariant> {
    let mut believers = 0;
    let mut broken = None;
    for (place, local) in (0_u8..).zip(&world.locals[..catalogue.configuration.candidates]) {
        let token = catalogue.brief(*local).believes;
        if token == 0 || token == world.forced {
            continue;
        }
        believers += 1;
        let holds = world.holder == Holder::Place(place, Sender::Present);
        let held = world
            .record
            .filter(|record| record.is_held() && record.token == token);
        if !holds || held.is_none() {
            broken = Some(Invariant::BeliefIsTrue);
        }
    }
    if believers > 1 {
        broken = Some(Invariant::OneBeliever);
    }
    broken
}

/// Whether anybody believes in anything.
pub(crate) fn anybody_believes(catalogue: &Catalogue, world: &World) -> bool {
    let locals = &world.locals[..catalogue.configuration.candidates];
    locals.iter().any(|local| catalogue.brief(*local).believes != 0)
}

/// Whether the candidate in this place left a lease that it does not know of, when it said that its campaign
/// is over: `forgot` are the attempts that it may have taken the lease by, `left` is the token whose release
/// it has sent.
pub(crate) fn withdrawal(world: &World, place: u8, forgot: Ranks, left: u8) -> Option<Invariant> {
    let record = world.record.filter(|record| record.is_held())?;
    let lost = world.holder == Holder::Place(place, Sender::Present)
        && forgot.contains(record.attempt)
        && record.token != left;
    lost.then_some(Invariant::WithdrawalLeavesNothing)
}

/// Whether a fence may admit a term: nothing is admitted after a later one has claimed (`mark`, 0 for none).
pub(crate) fn admitted(token: u8, mark: u8) -> Option<Invariant> {
    (token < mark).then_some(Invariant::FenceHolds)
}

/// Whether the store did right by a request.
pub(crate) fn arrival(
    ask: Ask,
    before: Option<Record>,
    whose: Whose,
    applied: &Applied,
) -> Option<Invariant> {
    let after = applied.record;
    let changed = after != before || (before.is_some() && applied.whose != whose);
    match (ask, applied.answer) {
        (Ask::Acquire { .. }, Answer::Granted { token }) => {
            let before = before?;
            if before.is_held() && whose == Whose::Another {
                Some(Invariant::OneHolder)
            } else if applied.again {
                let same = before.is_held() && token == before.token;
                (!same).then_some(Invariant::TokenOnce)
            } else {
                (token <= before.token).then_some(Invariant::TokensRise)
            }
        }
        (Ask::Acquire { .. } | Ask::Look, _) => changed.then_some(Invariant::LosersChangeNothing),
        (Ask::Renew { .. }, _) => {
            let (Some(before), Some(after)) = (before, after) else {
                return changed.then_some(Invariant::RenewalIsInert);
            };
            let longer = Record {
                remaining: after.remaining,
                ..before
            };
            let inert = applied.whose == whose
                && if before.is_held() {
                    after == longer
                } else {
                    after == before
                };
            (!inert).then_some(Invariant::RenewalIsInert)
        }
        (Ask::Release { token, attempt }, _) => {
            let own = before.is_some_and(|before| before.token == token && before.attempt == attempt);
            (changed && !(own && whose == Whose::Own)).then_some(Invariant::ReleasesOnlyItsOwn)
        }
    }
}

/// What an arrival shows to be possible.
pub(crate) fn reached(before: Option<Record>, whose: Whose, applied: &Applied) -> Milestones {
    let mut reached = Milestones::default();
    if applied.again {
        reached.add(Milestone::GrantedAgain);
    }
    match (applied.answer, before) {
        (Answer::Granted { .. }, Some(before)) if whose == Whose::Another => {
            reached.add(if before.released {
                Milestone::TakenAfterRelease
            } else {
                Milestone::TakenOver
            });
        }
        (Answer::Superseded, _) => reached.add(Milestone::Superseded),
        _ => {}
    }
    reached
}
