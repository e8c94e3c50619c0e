//! Many locks held by one process.

use super::place::Place;
use crate::counting::Counting;
use crate::figures::judge;
use crate::server::Kind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::{Authority, Lock, LockManager, LockTimingOptions};
use tenure_testkit::Size;

/// Calls of the store that a beat may take, of 10,000 locks or fewer; of more, one for each thousand. One is
/// a call of [`LeaseStore::renew`](tenure::LeaseStore::renew). How many requests of the server that is, the
/// tests of the stores count: one, but two on MongoDB, on NATS one for each lock, and on a quorum one for
/// each member.
const CALLS_MAX: u32 = 10;

/// Tasks that take the locks.
const TAKERS: u32 = 64;

pub async fn measure(kind: Kind, locks: u32, time: Duration, ttl: Duration) {
    let place = Place::start(kind, Size::One).await;
    let store = Arc::new(Counting::new(place.store().await));
    let timing = LockTimingOptions::new(ttl).check().unwrap();
    let manager = LockManager::builder(store.clone())
        .timing(timing)
        .locks_max(u64::from(locks))
        .build()
        .unwrap();
    let manager = Arc::new(manager);
    let before = resident_bytes();
    let began = Instant::now();
    let mut held = Vec::with_capacity(locks as usize);
    let takers: Vec<_> = (0..TAKERS)
        .map(|taker| tokio::spawn(take(manager.clone(), taker, locks)))
        .collect();
    for taker in takers {
        held.extend(taker.await.unwrap());
    }
    println!(
        "{locks} locks, ttl {ttl:?}, taken in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let (cpu, requests, began) = (processor_seconds(), store.requests(), Instant::now());
    tokio::time::sleep(time).await;
    let lost = held
        .iter()
        .filter(|lock| lock.authority() == Authority::None)
        .count();
    let seconds = began.elapsed().as_secs_f64();
    let cpu = processor_seconds() - cpu;
    let requests = f64::from(store.requests() - requests);
    println!("held for {seconds:.0} s by one process, its store's driver included:");
    judge("  lost", f64::from(u32::try_from(lost).unwrap()), 0.0, "locks");
    judge("  processor", cpu / seconds, 0.5, "cores");
    let beats = (seconds / timing.lease().renew_every().as_secs_f64())
        .floor()
        .max(1.0);
    let one_each = f64::from(locks) * beats;
    judge(
        "  calls of the store, of one for each lock",
        requests / one_each,
        1.0 / 20.0,
        "",
    );
    judge(
        "  calls of the store, a beat",
        requests / beats,
        f64::from(locks.div_ceil(1_000).max(CALLS_MAX)),
        "calls",
    );
    let bytes = resident_bytes().saturating_sub(before);
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    judge(
        "  resident memory",
        bytes as f64 / f64::from(locks),
        1024.0,
        "bytes a lock",
    );
    assert_eq!(lost, 0, "locks were lost");
    // Released one by one, 100,000 would take longer than the measurement: they end with the process.
    held.into_iter().for_each(std::mem::forget);
    std::mem::forget(manager);
}

async fn take(manager: Arc<LockManager>, taker: u32, locks: u32) -> Vec<Lock> {
    let mut held = Vec::new();
    for number in (taker..locks).step_by(TAKERS as usize) {
        held.push(manager.lock(format!("lock/{number}")).await.unwrap());
    }
    held
}

/// What this process has in memory now.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// What all threads of this process have used, in seconds.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: u32 = fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap();
    // The kernel counts in hundredths of a second for every program.
    f64::from(ticks) / 100.0
}
