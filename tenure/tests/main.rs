//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod asking;
#[cfg(any(
    feature = "etcd",
    feature = "mongodb",
    feature = "mysql",
    feature = "nats",
    feature = "postgres",
    feature = "redis"
))]
mod believed;
#[cfg(all(feature = "mongodb", feature = "mysql", feature = "postgres"))]
mod claims_that_wait;
mod crate_docs;
mod election;
mod election_watches;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(all(feature = "metrics", feature = "etcd"))]
mod etcd_full;
mod example;
mod guarantees;
mod harness;
mod housekeeping;
mod lock_abandoned;
mod lock_back_off;
mod lock_bounds;
mod lock_fairness;
mod lock_flood;
mod lock_handing_on;
mod lock_kept_watches;
mod lock_owners;
mod lock_patience;
mod lock_places;
mod lock_priority;
mod lock_processes;
#[cfg(feature = "mongodb")]
mod lock_releases;
mod lock_steps;
mod lock_tags;
mod lock_turns;
mod lock_watches;
mod locks;
#[cfg(all(
    feature = "postgres",
    feature = "mysql",
    feature = "etcd",
    feature = "nats",
    feature = "redis"
))]
mod locks_elsewhere;
mod locks_many;
#[cfg(feature = "mongodb")]
mod locks_mongodb;
#[cfg(feature = "redis")]
mod locks_redis;
mod loss;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(
    feature = "metrics",
    feature = "sqlite",
    feature = "postgres",
    feature = "mysql",
    feature = "redis",
    feature = "etcd",
    feature = "nats",
    feature = "mongodb"
))]
mod metrics_of_fences;
#[cfg(feature = "mongodb")]
mod mongodb;
#[cfg(feature = "mongodb")]
mod mongodb_logins;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "nats")]
mod nats;
mod no_threads;
mod observing;
mod opening;
#[cfg(all(
    feature = "etcd",
    feature = "mongodb",
    feature = "nats",
    feature = "redis",
    feature = "sqlite"
))]
mod partitions;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod refused_login;
mod registry;
mod root_names;
#[cfg(any(
    feature = "redis",
    feature = "postgres",
    feature = "mysql",
    feature = "mongodb"
))]
mod stepped_clocks;
#[cfg(all(
    feature = "sqlite",
    feature = "mongodb",
    feature = "postgres",
    feature = "mysql",
    feature = "redis",
    feature = "etcd",
    feature = "nats"
))]
mod stores_table;
mod suspend;
#[cfg(feature = "trace")]
mod trace;
