//! Uncontended lock + release.

use super::bare::Bare;
use super::place::Place;
use crate::figures::{Samples, judge, milliseconds};
use crate::server::Kind;
use crate::store::Cycle;
use crate::turns::timed;
use tenure::{LockManager, ReleaseOutcome};
use tenure_testkit::Size;

/// Rounds before those that count.
const WARMING_UP: u32 = 50;

pub async fn measure(kind: Kind, rounds: u32) {
    let place = Place::start(kind, Size::Three).await;
    let mut bare = Bare::beside(&place).await;
    // In a file of its own, where the store is one: what one of the three leaves in a log is not another's.
    let store = place.store_apart("contract").await;
    let mut cycle = Cycle::new(&*store);
    let manager = LockManager::builder(place.store().await).build().unwrap();
    let mut samples = [Samples::default(), Samples::default(), Samples::default()];
    for round in 0..rounds + WARMING_UP {
        if round == WARMING_UP {
            samples = Default::default();
        }
        let [raw, contract, locks] = &mut samples;
        // The order of the turns changes: what one leaves to a disk falls to whoever comes next.
        for turn in 0..3 {
            match (turn + round) % 3 {
                0 => timed(raw, bare.turn(round)).await,
                1 => timed(contract, cycle.turn()).await,
                _ => timed(locks, lock_and_release(&manager)).await,
            }
        }
    }
    println!("lock + release, {rounds} rounds of each, taking turns:");
    for (what, samples) in ["bare driver", "store contract", "lock manager"]
        .iter()
        .zip(&samples)
    {
        let (p50, p99) = (
            milliseconds(samples.percentile(50.0)),
            milliseconds(samples.percentile(99.0)),
        );
        println!("  {what:<14} p50 {p50:.3} ms, p99 {p99:.3} ms");
    }
    let p50 = |samples: &Samples| samples.percentile(50.0).as_secs_f64();
    let ratio = p50(&samples[2]) / p50(&samples[0]);
    judge(
        "  the lock manager's p50 to the bare driver's",
        ratio,
        1.10,
        "times",
    );
}

async fn lock_and_release(manager: &LockManager) {
    let mut lock = manager.lock("locks").await.unwrap();
    assert_eq!(lock.release().await, ReleaseOutcome::Released);
}
