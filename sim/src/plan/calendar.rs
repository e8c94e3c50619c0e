//! The calendar of a plan: which fault happens when, to whom, how hard. Drawn before the run and never again,
//! so that leaving one fault out moves no other.

use super::swarm::{self, Share};
use super::{Plan, purpose};
use crate::chance::Chance;
use crate::faults::FaultKind;

/// A fault that was planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// When it comes, or is ready to come: some wait for their opportunity, such as the next request.
    /// Nanoseconds of real time.
    pub at: u64,
    /// What comes.
    pub kind: FaultKind,
    /// Whom it hits: any number, taken modulo what there is to be hit.
    pub target: u32,
    /// How hard, 0 ..= 1023.
    pub size: u32,
}

/// Most faults of one plan.
const FAULTS_MAX: usize = 2_000;

pub(super) fn of(plan: &Plan) -> Vec<Planned> {
    let mut chance = Chance::of(plan.seed, purpose::CALENDAR);
    let severity = chance.weighted(&[(250, 1), (1_000, 3), (2_000, 2)]);
    let mut calendar = Vec::with_capacity(128);
    for Share {
        kind,
        per_mille_terms,
    } in swarm::drawn(plan, &mut chance)
    {
        // Each kind has a stream of its own, so that a change to one kind in this source moves no other.
        let mut own = Chance::of(plan.seed, purpose::CALENDAR + (kind as u64 + 1) * 16);
        let expected = per_mille_terms * super::TERMS_PLANNED * severity / 1_000;
        let count = expected / 1_000 + u64::from(own.per_mille(expected % 1_000));
        for _ in 0..count {
            if calendar.len() == FAULTS_MAX {
                break;
            }
            let drawn = own.roll();
            calendar.push(Planned {
                at: own.below(plan.horizon),
                kind,
                target: u32::try_from(drawn >> 32).unwrap_or(0),
                size: u32::try_from(drawn & 1023).unwrap_or(0),
            });
        }
    }
    calendar.sort_by_key(|planned| planned.at);
    calendar
}
