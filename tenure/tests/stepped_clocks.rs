//! A server's clock is set, within what the timing allows for: with every store that goes by its server's
//! clock.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::contract::{Acquire, Acquired, Attempt, CandidateId, Note};
use tenure::{Authority, Election, LeaseName, LeaseStore, SharedStore, StoreError, TimingOptions};
use tenure_testkit::{Fault, FaultProxy, ServerClock};

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within 60 s"),
    }
}

async fn connected<S: LeaseStore + 'static>(
    connecting: impl Future<Output = Result<S, StoreError>>,
) -> SharedStore {
    Arc::new(soon("connecting", connecting).await.unwrap())
}

/// The server's clock jumps ahead by as much as the timing allows for, while the leader cannot be reached:
/// whoever takes the lease at the first moment at which the server gives it away finds that the leader has
/// stopped believing.
///
/// `ours` goes through the proxy, and `theirs` does not. Played anew where the machine was so late that the
/// lease would have been free without the step: then it has shown nothing.
async fn a_step_within_the_allowance_makes_no_two_leaders(
    clock: &ServerClock,
    proxy: &FaultProxy,
    ours: SharedStore,
    theirs: SharedStore,
) {
    for round in 0..ROUNDS_MAX {
        let name = LeaseName::new(format!("job-{round}")).unwrap();
        clock.set_ahead(0.0).unwrap();
        proxy.set(Fault::Pass);
        if a_step_takes_the_lease_early(clock, proxy, &name, &ours, &theirs).await {
            return;
        }
    }
    panic!("the step has ended no lease early, in each of {ROUNDS_MAX} rounds");
}

/// How often the machine may be late by as much as the clock was set.
const ROUNDS_MAX: u32 = 10;

/// Whether the step has ended the lease before its ttl.
async fn a_step_takes_the_lease_early(
    clock: &ServerClock,
    proxy: &FaultProxy,
    name: &LeaseName,
    ours: &SharedStore,
    theirs: &SharedStore,
) -> bool {
    let step = Duration::from_secs(1);
    let options = TimingOptions {
        step_allowance: Some(step),
        ..TimingOptions::new(Duration::from_secs(6))
    };
    let leader = Election::builder(name.as_str(), Arc::clone(ours))
        .candidate("leader")
        .timing(options.check().unwrap())
        .build()
        .unwrap();
    let sent = Instant::now();
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    proxy.set(Fault::BlackHole);
    clock.set_ahead(step.as_secs_f64()).unwrap();
    let request = Acquire {
        name: name.clone(),
        candidate: tenure::tooling::candidate(CandidateId::new("thief").unwrap()),
        attempt: Attempt::FIRST,
        ttl: options.check().unwrap().ttl(),
        note: Note::default(),
    };
    let stolen = soon("the lease is given away", async {
        loop {
            // A request that a server was too slow for is asked again: what it has granted is told again, and
            // as the same term.
            if let Ok(Acquired::Granted(grant)) = theirs.acquire(&request).await {
                return grant;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let took = sent.elapsed();
    assert_eq!(leadership.authority(), Authority::None, "{leadership:?}");
    assert!(stolen.token > leadership.token());
    took < request.ttl.duration()
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_step_of_the_servers_clock_within_the_allowance_makes_no_two_leaders() {
    use tenure::redis::RedisStore;
    use tenure_testkit::{RedisOptions, RedisServer};
    let clock = ServerClock::new().unwrap();
    let server = RedisServer::start(RedisOptions::durable().by(&clock))
        .await
        .unwrap();
    let proxy = FaultProxy::redis(server.address()).unwrap();
    let connect = async |url: String| connected(RedisStore::connect(&url)).await;
    let ours = connect(format!("redis://{}", proxy.address())).await;
    let theirs = connect(server.url()).await;
    a_step_within_the_allowance_makes_no_two_leaders(&clock, &proxy, ours, theirs).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_step_of_the_clock_of_postgres_within_the_allowance_makes_no_two_leaders() {
    use tenure::postgres::PostgresStore;
    use tenure_testkit::Postgres;
    let clock = ServerClock::new().unwrap();
    let server = Postgres::by(&clock).await.unwrap();
    PostgresStore::init(&server.uri()).await.unwrap();
    let proxy = FaultProxy::postgres(server.address()).unwrap();
    let connect = async |url: String| connected(PostgresStore::connect(&url)).await;
    let through = format!("postgres://postgres@{}/postgres?sslmode=disable", proxy.address());
    let (ours, theirs) = (connect(through).await, connect(server.uri()).await);
    a_step_within_the_allowance_makes_no_two_leaders(&clock, &proxy, ours, theirs).await;
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn a_step_of_the_clock_of_mysql_within_the_allowance_makes_no_two_leaders() {
    use tenure::mysql::MysqlStore;
    use tenure_testkit::Mariadb;
    let clock = ServerClock::new().unwrap();
    let server = Mariadb::by(&clock).await.unwrap();
    server.execute("CREATE DATABASE jobs").await.unwrap();
    MysqlStore::init(&server.uri_of("jobs")).await.unwrap();
    let proxy = FaultProxy::mysql(server.address()).unwrap();
    let connect = async |url: String| connected(MysqlStore::connect(&url)).await;
    let ours = connect(format!("mysql://root@{}/jobs", proxy.address())).await;
    let theirs = connect(server.uri_of("jobs")).await;
    a_step_within_the_allowance_makes_no_two_leaders(&clock, &proxy, ours, theirs).await;
}

#[cfg(feature = "mongodb")]
#[tokio::test]
async fn a_step_of_the_clock_of_mongodb_within_the_allowance_makes_no_two_leaders() {
    use tenure::mongodb::MongoStore;
    use tenure_testkit::ReplicaSet;
    let clock = ServerClock::new().unwrap();
    let set = ReplicaSet::by(&clock).await.unwrap();
    let proxy = FaultProxy::mongodb(set.address(0)).unwrap();
    let connect = async |url: String| connected(MongoStore::connect(&url)).await;
    let (ours, theirs) = (connect(proxy.mongodb_uri()).await, connect(set.uri()).await);
    a_step_within_the_allowance_makes_no_two_leaders(&clock, &proxy, ours, theirs).await;
}
