//! Deployments of a single server, which all begin alike.

use super::{Campaign, Deployment, Process, Promise, Seen, run};
use std::time::Duration;
use tenure_testkit::{Mariadb, NatsServer, Postgres, RedisServer};

/// Processes that want the leases.
const PROCESSES: usize = 4;

/// Runs a campaign of so many terms against one server; `commands` are those of [`Campaign`], and `connect`
/// makes one process.
///
/// # Panics
/// As [`run`].
pub async fn run_alone(
    terms: u64,
    commands: &'static [&'static str],
    server: &mut impl Deployment,
    connect: impl AsyncFn() -> Process,
) -> Seen {
    let campaign = Campaign {
        terms,
        promise: Promise::Exclusion,
        ttl: Duration::from_millis(800),
        leases: 48,
        commands,
        faults_per_harm: 12,
        harmed_max: 1,
        harm_time_max: Duration::from_secs(1),
    };
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        processes.push(connect().await);
    }
    run(&campaign, server, processes).await
}

macro_rules! alone {
    ($($server:ty),*) => {$(
        impl Deployment for $server {
            fn members(&self) -> usize {
                1
            }

            fn kill(&mut self, _member: usize) {
                <$server>::kill(self);
            }

            async fn restart(&mut self, _member: usize) {
                <$server>::restart(self).await.expect("it starts again");
            }

            fn freeze(&mut self, _member: usize) {
                <$server>::freeze(self);
            }

            fn thaw(&mut self, _member: usize) {
                <$server>::thaw(self);
            }
        }
    )*};
}

alone!(Mariadb, NatsServer, Postgres, RedisServer);
