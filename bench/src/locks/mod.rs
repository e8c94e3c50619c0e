//! What locks cost, and how many a process can hold.

mod bare;
mod contend;
mod cycle;
mod hold;
mod place;

use crate::server::Kind;
use clap::Subcommand;
use std::time::Duration;
use tenure::Fairness;

#[derive(Subcommand)]
pub enum Figure {
    /// Uncontended lock + release, p50 against the two calls on the bare driver.
    Cycle {
        /// How many of each, taking turns.
        #[arg(long, default_value_t = 1000)]
        rounds: u32,
        /// On which store.
        #[arg(long, value_enum, default_value = "sqlite")]
        store: Kind,
    },
    /// Hand-overs of one lock among 64 tasks, against the raw store's; and the worst wait.
    Contend {
        /// How many hand-overs of each; default: as many as take some seconds, 2,000 on MongoDB and etcd and
        /// 10,000 elsewhere.
        #[arg(long)]
        turns: Option<u32>,
        /// In how many managers, as in so many processes.
        #[arg(long, default_value_t = 1)]
        managers: u32,
        /// First come, first served.
        #[arg(long)]
        fair: bool,
        /// On which store.
        #[arg(long, value_enum, default_value = "sqlite")]
        store: Kind,
    },
    /// Many locks held by one process: losses, processor, memory, calls of the store.
    Hold {
        /// How many locks.
        #[arg(long, default_value_t = 10_000)]
        locks: u32,
        /// For how many seconds.
        #[arg(long, default_value_t = 600)]
        seconds: u64,
        /// The ttl in seconds.
        #[arg(long, default_value_t = 30)]
        ttl: u64,
        /// On which store.
        #[arg(long, value_enum, default_value = "sqlite")]
        store: Kind,
    },
}

pub async fn measure(figure: Figure) {
    match figure {
        Figure::Cycle { rounds, store } => cycle::measure(store, rounds).await,
        Figure::Contend {
            turns,
            managers,
            fair,
            store,
        } => {
            let fairness = if fair { Fairness::Fair } else { Fairness::Barging };
            contend::measure(store, turns.unwrap_or(some_seconds(store)), managers, fairness).await;
        }
        Figure::Hold {
            locks,
            seconds,
            ttl,
            store,
        } => {
            let (time, ttl) = (Duration::from_secs(seconds), Duration::from_secs(ttl));
            hold::measure(store, locks, time, ttl).await;
        }
    }
}

/// So many hand-overs that what begins with all tasks at once is a small part of them.
fn some_seconds(store: Kind) -> u32 {
    match store {
        Kind::Mongodb | Kind::Etcd => 2_000,
        Kind::Sqlite | Kind::Postgres | Kind::Mysql | Kind::Redis | Kind::RedisQuorum | Kind::Nats => 10_000,
    }
}
