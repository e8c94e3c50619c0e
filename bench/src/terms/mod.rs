//! Leader-terms under random faults, on every deployment: one row for each, and a failure if any is violated
//! or has shown nothing. What is done and looked for: `tenure_conformance::terms`.

mod alone;
mod processes;
mod relay;
mod replica_set;
mod sentinels;
mod together;

pub use processes::serve;

use clap::ValueEnum;
use std::process::ExitCode;
use tenure_conformance::terms::Seen;
use tenure_testkit::Network;

/// Where the leases are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Deployment {
    /// A file that four processes share, which are killed and frozen.
    Sqlite,
    /// One server.
    Postgres,
    /// One server behind PgBouncer in transaction mode.
    Pgbouncer,
    /// One server.
    Mariadb,
    /// One server that has each write on disk before it confirms it.
    Redis,
    /// Five such servers that know nothing of each other.
    RedisQuorum,
    /// A primary, its replica and three sentinels: only its tokens are judged.
    RedisSentinels,
    /// A replica set of three.
    Mongodb,
    /// A cluster of three.
    Etcd,
    /// One server that has each write on disk before it confirms it.
    Nats,
    /// A cluster of three such servers.
    NatsCluster,
}

impl Deployment {
    fn shown(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite, four processes",
            Self::Postgres => "PostgreSQL, one",
            Self::Pgbouncer => "PostgreSQL, one, behind PgBouncer",
            Self::Mariadb => "MariaDB, one",
            Self::Redis => "Redis, one",
            Self::RedisQuorum => "Redis, a quorum of five",
            Self::RedisSentinels => "Redis behind sentinels, tokens alone",
            Self::Mongodb => "MongoDB, a replica set of three",
            Self::Etcd => "etcd, three",
            Self::Nats => "NATS, one",
            Self::NatsCluster => "NATS, three",
        }
    }

    /// So many terms there.
    async fn run(self, terms: u64) -> Seen {
        match self {
            Self::Sqlite => processes::measure(terms).await,
            Self::Postgres => alone::postgres(terms).await,
            Self::Pgbouncer => alone::pgbouncer(terms).await,
            Self::Mariadb => alone::mariadb(terms).await,
            Self::Redis => alone::redis(terms).await,
            Self::RedisQuorum => together::redis_quorum(terms).await,
            Self::RedisSentinels => sentinels::measure(terms).await,
            Self::Mongodb => replica_set::measure(terms).await,
            Self::Etcd => together::etcd(terms).await,
            Self::Nats => alone::nats(terms).await,
            Self::NatsCluster => together::nats_cluster(terms).await,
        }
    }
}

/// So many terms on each of these deployments, one after the other; none named: on all.
pub async fn measure(deployments: &[Deployment], terms: u64) -> ExitCode {
    let all = Deployment::value_variants();
    let named = if deployments.is_empty() { all } else { deployments };
    println!(
        "| deployment | terms | seconds | network faults | killed | frozen | cut off | while a network was silent | unknown outcomes | terms given again | renewals | \
         two believers, lost terms (where not promised) | duplicate tokens | violations |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut code = ExitCode::SUCCESS;
    for deployment in named {
        let seen = deployment.run(terms).await;
        report(*deployment, &seen);
        if !seen.is_good() {
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// What is between members that can be cut from each other; none, and why, where this is not root.
fn network() -> Option<Network> {
    Network::new()
        .inspect_err(|error| eprintln!("no member is cut off from the others: {error}"))
        .ok()
}

/// One row, and what is wrong.
fn report(deployment: Deployment, seen: &Seen) {
    println!(
        "| {} | {} | {:.0} | {} | {} | {} | {} | {} | {} | {} | {} | {} | **{}** | **{}** |",
        deployment.shown(),
        seen.terms,
        seen.took.as_secs_f64(),
        seen.faults.network,
        seen.faults.killed,
        seen.faults.frozen,
        seen.faults.cut_off,
        seen.faults.overlaps,
        seen.unknown,
        seen.again,
        seen.renewed,
        seen.not_excluded,
        seen.duplicate_tokens,
        seen.violations.len(),
    );
    for violation in &seen.violations {
        eprintln!("{}: {violation}", deployment.shown());
    }
    if !seen.has_shown_something() {
        eprintln!(
            "{}: too little was shown: {} outcomes unknown, {} terms given again, {:?}, never struck: {:?}",
            deployment.shown(),
            seen.unknown,
            seen.again,
            seen.faults,
            seen.unstruck
        );
    }
}

#[cfg(test)]
mod tests {
    use super::Deployment;

    /// The short form of the run, for every commit: it goes on until a member was killed, one frozen, and one
    /// harmed while a network was silent.
    #[tokio::test(flavor = "multi_thread")]
    async fn two_hundred_terms_on_a_quorum_of_five_under_faults_are_exclusive() {
        let seen = Deployment::RedisQuorum.run(200).await;
        assert!(seen.terms >= 200 && seen.duplicate_tokens == 0, "{seen:?}");
        assert_eq!(seen.violations, [""; 0], "{seen:?}");
        assert!(seen.has_shown_something() && seen.renewed > 0, "{seen:?}");
    }
}
