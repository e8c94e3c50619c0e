//! Acquire + release through the store contract, against the same written straight on the driver. The two
//! take turns in one run: whatever else the machine does, it does to both.

pub mod etcd;
pub mod mongodb;
pub mod mysql;
pub mod nats;
pub mod postgres;
pub mod redis;
pub mod sqlite;

use crate::figures::{Samples, judge, milliseconds};
use crate::turns::taking_turns;
use std::sync::atomic::{AtomicU64, Ordering};
use tenure::contract::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Incarnation, Note, Release, Released,
};
use tenure::{LeaseName, LeaseStore, Ttl};

/// How many pairs; 0 leaves a store out.
#[derive(clap::Args)]
pub struct Rounds {
    /// On SQLite.
    #[arg(long, default_value_t = 4000)]
    sqlite_rounds: u32,
    /// On a three-node replica set of MongoDB.
    #[arg(long, default_value_t = 600)]
    mongodb_rounds: u32,
    /// On PostgreSQL.
    #[arg(long, default_value_t = 2000)]
    postgres_rounds: u32,
    /// On MariaDB.
    #[arg(long, default_value_t = 2000)]
    mysql_rounds: u32,
    /// On Redis, each with and without its writes on disk.
    #[arg(long, default_value_t = 4000)]
    redis_rounds: u32,
    /// On etcd, alone and a cluster of three.
    #[arg(long, default_value_t = 2000)]
    etcd_rounds: u32,
    /// On NATS.
    #[arg(long, default_value_t = 4000)]
    nats_rounds: u32,
}

pub async fn measure(rounds: &Rounds) {
    if rounds.sqlite_rounds > 0 {
        sqlite::measure(rounds.sqlite_rounds).await;
    }
    if rounds.mongodb_rounds > 0 {
        mongodb::measure(rounds.mongodb_rounds).await;
    }
    if rounds.postgres_rounds > 0 {
        postgres::measure(rounds.postgres_rounds).await;
    }
    if rounds.mysql_rounds > 0 {
        mysql::measure(rounds.mysql_rounds).await;
    }
    if rounds.redis_rounds > 0 {
        redis::measure(rounds.redis_rounds).await;
    }
    if rounds.etcd_rounds > 0 {
        etcd::measure(rounds.etcd_rounds).await;
    }
    if rounds.nats_rounds > 0 {
        nats::measure(rounds.nats_rounds).await;
    }
}

/// One candidate that takes and gives back one lease again and again, through the contract.
pub struct Cycle<'a> {
    store: &'a dyn LeaseStore,
    acquire: Acquire,
}

impl<'a> Cycle<'a> {
    pub fn new(store: &'a dyn LeaseStore) -> Self {
        // Each is a process of its own, which begins with its first attempt.
        static NUMBER: AtomicU64 = AtomicU64::new(7);
        let incarnation = NUMBER.fetch_add(1, Ordering::Relaxed);
        let acquire = Acquire {
            name: LeaseName::new("bench").unwrap(),
            candidate: Candidate {
                id: CandidateId::new("bench").unwrap(),
                incarnation: Incarnation::from_bits(incarnation.into()),
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

/// Pairs that are not counted: connections, scripts and statements are new.
const WARM_UP: u32 = 100;

/// So many pairs of each, taking turns: `bare` takes the lease and gives it back on the bare driver. It is
/// told the number of the round.
async fn compare(what: &str, rounds: u32, store: &dyn LeaseStore, bare: impl AsyncFnMut(u32)) {
    let mut cycle = Cycle::new(store);
    let (raw, ours) = taking_turns(rounds, WARM_UP, bare, async |_| cycle.turn().await).await;
    report(what, &raw, &ours);
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
