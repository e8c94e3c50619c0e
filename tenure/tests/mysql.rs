//! Leading through the faults of a real MariaDB server and of the network before it.
use crate::believed::until_lost;
use std::sync::Arc;
use std::time::Duration;
use tenure::mysql::MysqlStore;
use tenure::{Authority, Cause, Election, Event, SharedStore, Timing, Ttl, clock_now};
use tenure_testkit::{Fault, FaultProxy, Mariadb, RequestFault};

fn timing() -> Timing {
    Timing::of(Ttl::from_secs(20).unwrap())
}

/// Nobody in a test waits for this to end.
const LONG_TTL_S: u64 = 600;

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within 60 s"),
    }
}

async fn connect(uri: &str) -> SharedStore {
    Arc::new(soon("connecting", MysqlStore::connect(uri)).await.unwrap())
}

fn election(store: SharedStore, candidate: &str, timing: Timing) -> Election {
    Election::builder("job", store)
        .candidate(candidate)
        .timing(timing)
        .build()
        .unwrap()
}

/// A restart of the server, and a cut of every connection, cost no leadership: each is replaced in time, and
/// the watch of who waits, too.
#[tokio::test]
async fn a_restarted_mysql_and_cut_connections_cost_no_leadership() {
    let mut server = Mariadb::start().await.unwrap();
    server.execute("CREATE DATABASE jobs").await.unwrap();
    MysqlStore::init(&server.uri_of("jobs")).await.unwrap();
    let proxy = FaultProxy::mysql(server.address()).unwrap();
    let through = format!("mysql://root@{}/jobs", proxy.address());
    let leader = election(connect(&through).await, "leader", timing());
    let standby = election(connect(&server.uri_of("jobs")).await, "standby", timing());
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    let campaign = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
    proxy.next_commands(1, "tenure_renew_1", RequestFault::CutAfter);
    proxy.next_commands(1, "tenure_renew_1", RequestFault::CutBefore);
    tokio::time::sleep(Duration::from_secs(2)).await;
    proxy.cut_connections();
    server.kill();
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.restart().await.unwrap();
    tokio::time::sleep(timing().ttl().duration()).await;
    assert!(
        matches!(leadership.authority(), Authority::Held { .. }),
        "{leadership:?}"
    );
    assert!(!campaign.is_finished(), "the standby leads, too");
    let mut renewals = 0;
    while let Ok(event) = events.try_recv() {
        assert!(!matches!(event, Event::Ended { .. }), "{event:?}");
        renewals += u32::from(matches!(event, Event::Renewed { .. }));
    }
    assert!(renewals >= 2, "{renewals} renewals");
    assert_eq!(proxy.faults_left(), 0, "the faults happened");
    let token = leadership.token();
    leadership.step_down().await;
    let next = soon("the standby's turn", campaign).await.unwrap().unwrap();
    assert!(next > token);
}

/// A standby does not wait for the ttl when the lease is given back, whoever gives it.
#[tokio::test]
async fn a_standby_on_mysql_is_woken_by_a_release() {
    let server = Mariadb::shared().await;
    server.execute("CREATE DATABASE woken").await.unwrap();
    let uri = server.uri_of("woken");
    MysqlStore::init(&uri).await.unwrap();
    let long = Timing::of(Ttl::from_secs(LONG_TTL_S).unwrap());
    let candidate = async |name: &str| {
        let builder = Election::builder("job", connect(&uri).await).candidate(name);
        builder.timing(long).build().unwrap()
    };
    let leadership = soon("the campaign", candidate("leader").await.campaign())
        .await
        .unwrap();
    let standby = candidate("standby").await;
    let mut events = standby.events();
    let campaign = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
    soon("the standby waits", async {
        while !matches!(events.recv().await.unwrap(), Event::Standby { .. }) {}
    })
    .await;
    let token = leadership.token();
    leadership.step_down().await;
    let next = soon("the standby's turn", campaign).await.unwrap().unwrap();
    assert!(next > token);
}

/// Nothing says that the connection is gone: the holder counts from before it sent, and stops by itself
/// before the standby has the lease.
#[tokio::test]
async fn a_silent_mysql_ends_the_term_at_its_deadline_and_the_standby_takes_over() {
    let server = Mariadb::shared().await;
    let uri = server.uri_of("silenced");
    server.execute("CREATE DATABASE silenced").await.unwrap();
    MysqlStore::init(&uri).await.unwrap();
    let proxy = FaultProxy::mysql(server.address()).unwrap();
    let through = format!("mysql://root@{}/silenced", proxy.address());
    let short = Timing::of(Ttl::from_secs(4).unwrap());
    let leader = election(connect(&through).await, "leader", short);
    let standby = election(connect(&uri).await, "standby", short);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let campaign = tokio::spawn(async move { (standby.campaign().await, standby) });
    proxy.set(Fault::BlackHole);
    let swallowed = || proxy.counts().swallowed_requests + proxy.counts().swallowed_replies;
    let before = swallowed();
    let (until, loss) = soon("the loss", until_lost(&leadership)).await;
    assert!(
        clock_now() >= until && matches!(loss.cause, Cause::Deadline(_)),
        "{loss}"
    );
    // On a connection that is new the server speaks first.
    assert!(swallowed() > before, "the renewals went into the hole");
    let (won, _standby) = soon("the take-over", campaign).await.unwrap();
    assert!(won.unwrap().token() > leadership.token());
}
