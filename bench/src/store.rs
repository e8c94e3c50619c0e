//! Acquire + release through the store contract, against the same written straight on the driver. The two
//! take turns in one run: whatever else the machine does, it does to both.

pub mod etcd;
pub mod mongodb;
pub mod redis;
pub mod sqlite;

use crate::figures::{Samples, judge, milliseconds};
use std::time::Instant;
use tenure::core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Incarnation, Note, Release, Released,
};
use tenure::{LeaseName, LeaseStore, Ttl};

pub async fn measure(sqlite_rounds: u32, mongodb_rounds: u32, redis_rounds: u32, etcd_rounds: u32) {
    if sqlite_rounds > 0 {
        sqlite::measure(sqlite_rounds).await;
    }
    if mongodb_rounds > 0 {
        mongodb::measure(mongodb_rounds).await;
    }
    if redis_rounds > 0 {
        redis::measure(redis_rounds).await;
    }
    if etcd_rounds > 0 {
        etcd::measure(etcd_rounds).await;
    }
}

/// One candidate that takes and gives back one lease again and again, through the contract.
pub struct Cycle<'a> {
    store: &'a dyn LeaseStore,
    acquire: Acquire,
}

impl<'a> Cycle<'a> {
    pub fn new(store: &'a dyn LeaseStore) -> Self {
        let acquire = Acquire {
            name: LeaseName::new("bench").unwrap(),
            candidate: Candidate {
                id: CandidateId::new("bench").unwrap(),
                incarnation: Incarnation::from_bits(7),
            },
            attempt: Attempt::FIRST,
            ttl: Ttl::from_secs(30).unwrap(),
            note: Note::default(),
        };
        Self { store, acquire }
    }

    pub async fn turn(&mut self) {
        let Ok(Acquired::Granted(grant)) = self.store.acquire(&self.acquire).await else {
            panic!("the lease is free")
        };
        let release = Release {
            name: self.acquire.name.clone(),
            incarnation: self.acquire.candidate.incarnation,
            token: grant.token,
            attempt: self.acquire.attempt,
        };
        let released = self.store.release(&[release]).await.remove(0);
        assert_eq!(released.unwrap(), Released::Vacated);
        self.acquire.attempt = self.acquire.attempt.next();
    }
}

pub async fn timed(samples: &mut Samples, turn: impl Future<Output = ()>) {
    let start = Instant::now();
    turn.await;
    samples.add(start.elapsed());
}

fn report(store: &str, raw: &Samples, ours: &Samples) {
    println!(
        "{store}: acquire + release, {} rounds of each, taking turns:",
        raw.len()
    );
    for (what, samples) in [("bare driver", raw), ("tenure", ours)] {
        let (p50, p99) = (
            milliseconds(samples.percentile(50.0)),
            milliseconds(samples.percentile(99.0)),
        );
        println!("  {what:<12} p50 {p50:.3} ms, p99 {p99:.3} ms");
    }
    let ratio = ours.percentile(50.0).as_secs_f64() / raw.percentile(50.0).as_secs_f64();
    judge(
        &format!("  {store}, tenure's p50 to the bare driver's"),
        ratio,
        1.10,
        "times",
    );
}
