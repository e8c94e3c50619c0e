//! Swarm testing: each plan has a random part of the kinds of faults, and each of them its own intensity.
//!
//! A plan with everything at once would hide what needs a few faults and quiet around them. The idea: Groce,
//! Zhang, Eide, Chen, Regehr: "Swarm Testing", 2012.

use super::{Broken, Plan, StoreKind, TokenFloor};
use crate::chance::Chance;
use crate::faults::FaultKind;

/// How often a kind comes in one plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) kind: FaultKind,
    /// Times in a thousand terms that are planned.
    pub(super) per_mille_terms: u64,
}

/// The kinds that this plan has.
pub(super) fn drawn(plan: &Plan, chance: &mut Chance) -> Vec<Share> {
    let calm = chance.per_mille(40);
    FaultKind::ALL
        .iter()
        .filter_map(|kind| {
            let enabled = chance.per_mille(550);
            let intensity = chance.weighted(&[(400, 2), (1_000, 3), (2_500, 1)]);
            let usual = usual(plan, *kind);
            (enabled && !calm && usual > 0).then_some(Share {
                kind: *kind,
                per_mille_terms: usual * intensity / 1_000,
            })
        })
        .collect()
}

/// How often a kind comes in a thousand terms, where it is enabled; 0 where it cannot come.
fn usual(plan: &Plan, kind: FaultKind) -> u64 {
    let broken = |what: Broken, often: u64| if plan.broken == Some(what) { often } else { 0 };
    let by_clock = |often: u64| {
        if plan.store.kind == StoreKind::ServerClock {
            often
        } else {
            0
        }
    };
    match kind {
        FaultKind::TailLoss | FaultKind::StoreWipe => broken(Broken::Store, 1_300),
        FaultKind::StoreRestore => broken(Broken::Store, 3_200),
        FaultKind::FrozenClock => broken(Broken::Rate, 3_000),
        FaultKind::StoreStepForward | FaultKind::StoreStepBack => by_clock(60),
        FaultKind::FailoverRefresh => by_clock(if plan.store.refreshes_at_failover { 150 } else { 0 }),
        FaultKind::StoreFailover => 45,
        FaultKind::StaleRead => {
            if plan.store.reads_lag {
                90
            } else {
                0
            }
        }
        FaultKind::Withdrawal => 70,
        FaultKind::DelayedDeletion
            if plan.store.token_floor == TokenFloor::Nothing && plan.store.kind == StoreKind::Observed =>
        {
            0
        }
        FaultKind::DelayedDeletion => 45,
        FaultKind::Twin | FaultKind::Herd => 30,
        FaultKind::SlowStore => 28,
        FaultKind::ForcedRelease => 30,
        FaultKind::Crash => 60,
        FaultKind::PausePastTtl | FaultKind::Suspend => 40,
        FaultKind::PartitionBothWays | FaultKind::PartitionToStore | FaultKind::PartitionFromStore => 40,
        FaultKind::LateDuplicate | FaultKind::ReplyLost => 90,
        FaultKind::AppliedThenError => 60,
        FaultKind::StuckWork => 60,
        FaultKind::LateWrite => 70,
        FaultKind::RequestLost
        | FaultKind::Delay
        | FaultKind::Reordering
        | FaultKind::Duplicate
        | FaultKind::PauseShort
        | FaultKind::RateDrift
        | FaultKind::LateWake
        | FaultKind::WatchGap
        | FaultKind::WatchDuplicate
        | FaultKind::WatchDelay
        | FaultKind::WatchLoss
        | FaultKind::Busy
        | FaultKind::Unreachable
        | FaultKind::Misconfiguration
        | FaultKind::AskedToStepDown => 60,
        // These follow from others, from the store's habits, or from the phase after the faults.
        FaultKind::Restart | FaultKind::OtherTtl | FaultKind::ShortOutage => 0,
    }
}
