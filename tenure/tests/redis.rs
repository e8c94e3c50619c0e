//! Leading through the faults of a real Redis server and of the network before it.
use crate::believed::until_lost;
use std::sync::Arc;
use std::time::Duration;
use tenure::redis::RedisStore;
use tenure::{Authority, Cause, Election, Event, SharedStore, Timing, Ttl, clock_now};
use tenure_testkit::{Fault, FaultProxy, RedisOptions, RedisServer, RequestFault};

fn timing() -> Timing {
    Timing::of(Ttl::from_secs(12).unwrap())
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within 60 s"),
    }
}

async fn connect(url: &str) -> SharedStore {
    Arc::new(soon("connecting", RedisStore::connect(url)).await.unwrap())
}

fn election(store: SharedStore, candidate: &str) -> Election {
    Election::builder("job", store)
        .candidate(candidate)
        .timing(timing())
        .build()
        .unwrap()
}

async fn behind_a_proxy() -> (RedisServer, FaultProxy, Election, Election) {
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let proxy = FaultProxy::redis(server.address()).unwrap();
    let leader = election(connect(&format!("redis://{}", proxy.address())).await, "leader");
    let standby = election(connect(&server.url()).await, "standby");
    (server, proxy, leader, standby)
}

#[tokio::test]
async fn a_silent_redis_ends_the_term_at_its_deadline_and_the_standby_takes_over() {
    let (_server, proxy, leader, standby) = behind_a_proxy().await;
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let campaign = tokio::spawn(async move { (standby.campaign().await, standby) });
    proxy.set(Fault::BlackHole);
    let (until, loss) = soon("the loss", until_lost(&leadership)).await;
    assert!(
        clock_now() >= until && matches!(loss.cause, Cause::Deadline(_)),
        "{loss}"
    );
    let (won, _standby) = soon("the take-over", campaign).await.unwrap();
    assert!(won.unwrap().token() > leadership.token());
}

#[tokio::test]
async fn a_connection_that_falls_silent_costs_no_leadership() {
    let (_server, proxy, leader, standby) = behind_a_proxy().await;
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    let campaign = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
    proxy.set(Fault::BlackHole);
    // One renewal falls into the hole; the connection stays silent for good.
    let swallowed = proxy.counts().swallowed_requests;
    tenure_testkit::eventually_async(Duration::from_secs(30), "a renewal in the hole", || async {
        proxy.counts().swallowed_requests > swallowed
    })
    .await;
    proxy.heal();
    tokio::time::sleep(timing().ttl().duration() + Duration::from_secs(2)).await;
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
    assert!(renewals >= 1, "{renewals} renewals");
    campaign.abort();
}

#[tokio::test]
async fn a_lost_reply_to_the_acquisition_in_redis_costs_no_second_term() {
    let (_server, proxy, leader, _standby) = behind_a_proxy().await;
    let teaching = soon("a campaign that teaches the server the script", leader.campaign());
    let leadership = teaching.await.unwrap();
    // Its release would meet the fault, else.
    soon("the release", leadership.step_down()).await;
    proxy.next_commands(1, "EVALSHA", RequestFault::CutAfter);
    let other = Election::builder("other", connect(&format!("redis://{}", proxy.address())).await)
        .candidate("leader")
        .timing(timing())
        .build()
        .unwrap();
    let leadership = soon("the campaign", other.campaign()).await.unwrap();
    assert_eq!(proxy.counts().cut_after, 1, "the reply was lost");
    assert_eq!(leadership.terms(), 1, "the same attempt found its own term");
}

#[tokio::test]
async fn a_release_in_redis_wakes_the_standby_long_before_the_lease_would_end() {
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let leader = election(connect(&server.url()).await, "leader");
    let standby = election(connect(&server.url()).await, "standby");
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let campaign =
        tokio::spawn(async move { (standby.campaign().await.map(|won| won.token()), clock_now()) });
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    let (until, token) = (leadership.until(), leadership.token());
    soon("the release", leadership.step_down()).await;
    let (won, when) = soon("the hand-over", campaign).await.unwrap();
    assert!(won.unwrap() > token);
    assert!(when < until, "the standby waited for the lease to run out");
}

#[test]
fn blocked_user_code_does_not_starve_renewals_in_redis() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
        let election = election(connect(&server.url()).await, "leader");
        let leadership = soon("the campaign", election.campaign()).await.unwrap();
        // The only worker of this runtime is busy for longer than the ttl.
        std::thread::sleep(timing().ttl().duration() * 5 / 4);
        assert!(
            matches!(leadership.authority(), Authority::Held { .. }),
            "{leadership:?}"
        );
    });
}

/// Whether this process has a thread whose name, of which the kernel keeps 15 bytes, begins so.
fn has_thread(name: &str) -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads.flatten().any(|thread| {
        // A thread may end meanwhile.
        std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.starts_with(name))
    })
}

#[tokio::test]
async fn elections_over_one_store_of_a_server_need_no_thread_each() {
    let folder = tenure_testkit::ScratchDir::new("threads");
    let file: SharedStore = Arc::new(tenure::sqlite::SqliteStore::open(folder.join("leases.db")).unwrap());
    let alone = Election::builder("alone", file).timing(timing()).build().unwrap();
    // A thread names itself, when it runs.
    let of_its_own = || async { has_thread("tenure alone") };
    tenure_testkit::eventually_async(
        Duration::from_secs(30),
        "a thread where the store has none",
        of_its_own,
    )
    .await;
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let store = connect(&server.url()).await;
    let mut led = Vec::new();
    for number in 0..50 {
        let election = Election::builder(format!("crowd/{number}"), store.clone());
        let election = election.timing(timing()).build().unwrap();
        let leadership = soon("a campaign", election.campaign()).await.unwrap();
        led.push((leadership, election));
    }
    assert!(!has_thread("tenure crowd"), "a thread for each of 50 elections");
    drop((led, alone));
}
