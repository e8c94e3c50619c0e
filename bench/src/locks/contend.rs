//! One lock, many tasks.

use super::bare::Bare;
use super::place::Place;
use crate::figures::{Samples, judge, milliseconds};
use crate::server::Kind;
use crate::store::Cycle;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tenure::{Fairness, LockManager};
use tenure_testkit::Size;

const TASKS: u32 = 64;

/// Of each kind before the other has its turn: whatever else the machine does, it does to both.
const SLICES: u32 = 5;

pub async fn measure(kind: Kind, turns: u32, managers: u32, fairness: Fairness) {
    let place = Place::start(kind, Size::Three).await;
    let store = place.store().await;
    let mut cycle = Cycle::new(&*store);
    let mut bare = Bare::beside(&place).await;
    let mut all = Vec::new();
    for number in 0..managers.max(1) {
        let builder = LockManager::builder(place.store().await).candidate(format!("manager-{number}"));
        all.push(Arc::new(builder.fairness(fairness).build().unwrap()));
    }
    let (mut driver, mut raw, mut locks) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let (mut waits, mut alone) = (Samples::default(), Duration::ZERO);
    let each = turns.div_ceil(SLICES);
    for slice in 0..SLICES {
        let began = Instant::now();
        for turn in 0..each {
            bare.turn(slice * each + turn).await;
        }
        driver += began.elapsed();
        let began = Instant::now();
        for _ in 0..each {
            cycle.turn().await;
        }
        raw += began.elapsed();
        let began = Instant::now();
        let takings = contend(&all, each).await;
        locks += began.elapsed();
        alone = alone.max(longest_alone(&takings));
        for taking in takings {
            waits.add(taking.waited);
        }
    }
    let rate = |time: Duration| f64::from(each * SLICES) / time.as_secs_f64();
    println!(
        "{TASKS} tasks in {} managers contend for one lock, {fairness:?}, {turns} turns:",
        all.len()
    );
    println!(
        "  one after the other: by the bare driver {:.0} hand-overs a second, by the store's contract {:.0}",
        rate(driver),
        rate(raw)
    );
    println!("  locks: {:.0} hand-overs a second", rate(locks));
    let (p50, worst) = (waits.percentile(50.0), waits.percentile(100.0));
    println!(
        "  a wait: p50 {:.1} ms, worst {:.1} ms",
        milliseconds(p50),
        milliseconds(worst)
    );
    if managers > 1 {
        println!(
            "  one manager had it again and again for {:.1} ms at most",
            milliseconds(alone)
        );
    }
    for (whose, time) in [("the bare driver's", driver), ("the store contract's", raw)] {
        judge(
            &format!("  {whose} rate to that of locks"),
            rate(time) / rate(locks),
            1.0 / 0.9,
            "times",
        );
    }
}

struct Taking {
    at: Instant,
    manager: usize,
    waited: Duration,
}

/// The longest time in which nobody had the lock but one manager's, while those of the others waited.
fn longest_alone(takings: &[Taking]) -> Duration {
    let rows = takings.chunk_by(|one, next| one.manager == next.manager);
    let lasted = |row: &[Taking]| row[row.len() - 1].at - row[0].at;
    rows.map(lasted).max().unwrap_or_default()
}

/// Each task takes the lock again as soon as it has released it; answers who had it, in their order.
async fn contend(managers: &[Arc<LockManager>], turns: u32) -> Vec<Taking> {
    let left = Arc::new(AtomicU32::new(turns));
    let tasks: Vec<_> = (0..TASKS as usize)
        .map(|task| {
            let number = task % managers.len();
            let (manager, left) = (managers[number].clone(), left.clone());
            tokio::spawn(async move {
                let one_less = |left: u32| left.checked_sub(1);
                let mut takings = Vec::new();
                while left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                    .is_ok()
                {
                    let began = Instant::now();
                    let mut lock = manager.lock("contended").await.unwrap();
                    let at = Instant::now();
                    takings.push(Taking {
                        at,
                        manager: number,
                        waited: at - began,
                    });
                    lock.release().await;
                }
                takings
            })
        })
        .collect();
    let mut takings = Vec::new();
    for task in tasks {
        takings.extend(task.await.unwrap());
    }
    takings.sort_by_key(|taking| taking.at);
    takings
}
