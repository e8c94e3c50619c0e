//! Leading through the faults of real NATS servers and of the network before them.
use crate::believed::until_lost;
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::{Acquire, Attempt, Incarnation, Note};
use tenure::nats::NatsStore;
use tenure::tooling::Standby;
use tenure::{
    Authority, Candidate, CandidateId, Cause, Election, Event, Fairness, LeaseName, LockManager,
    LockTimingOptions, SharedStore, Timing, Ttl, clock_now,
};
use tenure_testkit::{Fault, FaultProxy, NatsCluster, NatsOptions, NatsServer, RequestFault};

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
    Arc::new(soon("connecting", NatsStore::connect(url)).await.unwrap())
}

fn election(store: SharedStore, candidate: &str, timing: Timing) -> Election {
    Election::builder("job", store)
        .candidate(candidate)
        .timing(timing)
        .build()
        .unwrap()
}

async fn behind_a_proxy() -> (NatsServer, FaultProxy, Election, Election) {
    let server = NatsServer::start(NatsOptions::default()).await.unwrap();
    let proxy = FaultProxy::nats(server.address()).unwrap();
    let leader = connect(&format!("nats://{}", proxy.address())).await;
    let leader = election(leader, "leader", timing());
    let standby = election(connect(&server.url()).await, "standby", timing());
    (server, proxy, leader, standby)
}

#[tokio::test]
async fn a_silent_nats_ends_the_term_at_its_deadline_and_the_standby_takes_over() {
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
async fn a_connection_to_nats_that_falls_silent_costs_no_leadership() {
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
async fn a_lost_reply_to_the_acquisition_in_nats_costs_no_second_term() {
    let (_server, proxy, leader, _standby) = behind_a_proxy().await;
    proxy.next_commands(1, "PUB", RequestFault::CutAfter);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    assert_eq!(proxy.counts().cut_after, 1, "the reply was lost");
    assert_eq!(leadership.terms(), 1, "the same attempt found its own term");
}

#[tokio::test]
async fn a_release_in_nats_wakes_the_standby_long_before_the_lease_would_end() {
    let server = NatsServer::start(NatsOptions::default()).await.unwrap();
    let leader = election(connect(&server.url()).await, "leader", timing());
    let standby = election(connect(&server.url()).await, "standby", timing());
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

/// A standby that watches sees the last renewal when it is written: it takes over one ttl after it, and not
/// two.
#[tokio::test]
async fn a_watching_standby_takes_over_one_ttl_after_the_last_renewal() {
    let (_server, proxy, leader, standby) = behind_a_proxy().await;
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let leadership = Arc::new(leadership);
    let before = Arc::clone(&leadership);
    let campaign = tokio::spawn(async move {
        let won = standby.campaign().await.map(|won| won.token());
        (won, clock_now(), before.authority())
    });
    // Some renewals are seen by the watch alone.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (silent_since, ttl) = (clock_now(), timing().ttl().duration());
    proxy.set(Fault::BlackHole);
    let (taken, (until, _loss)) = tokio::join!(
        soon("the take-over", campaign),
        soon("the loss", until_lost(&leadership))
    );
    let (won, when, believed) = taken.unwrap();
    assert!(won.unwrap() > leadership.token());
    // Not before: its deadline is the last that a renewal has set, and none is heard of any more.
    assert!(
        when >= until && believed == Authority::None,
        "taken over from {believed:?}, {when:?} before {until:?}"
    );
    let waited = when.since(silent_since);
    assert!(waited < ttl + ttl / 2, "{waited:?} with a ttl of {ttl:?}");
}

#[tokio::test]
async fn an_election_among_the_servers_costs_no_leadership() {
    let mut cluster = NatsCluster::start(NatsOptions::default()).await.unwrap();
    let timing = Timing::of(Ttl::from_secs(60).unwrap());
    let leader = election(connect(&format!("{}/app", cluster.url())).await, "leader", timing);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    let killed = cluster.leader_of("KV_app").await.unwrap();
    cluster.servers()[killed].kill();
    let renewed = async {
        loop {
            match events.recv().await {
                Ok(Event::Renewed { .. }) => return,
                Ok(event) => assert!(!matches!(event, Event::Ended { .. }), "{event:?}"),
                Err(error) => panic!("{error}"),
            }
        }
    };
    soon("a renewal by the new leader", renewed).await;
    assert!(
        matches!(leadership.authority(), Authority::Held { .. }),
        "{leadership:?}"
    );
}

/// Nobody takes a dead waiter's place, which would end its record: each new process sees it for the first
/// time.
#[tokio::test]
async fn whoever_comes_when_a_dead_waiters_ttl_is_over_does_not_wait_for_it() {
    let server = NatsServer::start(NatsOptions::default()).await.unwrap();
    let (name, ttl) = (LeaseName::new("a").unwrap(), Ttl::from_secs(20).unwrap());
    let place = Acquire {
        name: LeaseName::new("a/candidates/1/dead").unwrap(),
        candidate: Candidate {
            id: CandidateId::new("dead").unwrap(),
            incarnation: Incarnation::from_bits(1),
        },
        attempt: Attempt::FIRST,
        ttl,
        note: Note::default(),
    };
    let dead = connect(&server.url()).await;
    soon("its place", dead.acquire(&place)).await.unwrap();
    let waiting = soon("who waits", Standby::list(&dead, &name)).await.unwrap();
    assert_eq!(waiting.len(), 1, "it may live");
    tokio::time::sleep(ttl.duration() + Duration::from_secs(2)).await;
    for _ in 0..2 {
        let store = connect(&server.url()).await;
        let waiting = soon("who waits", Standby::list(&store, &name)).await.unwrap();
        assert_eq!(waiting, [], "it cannot be called to the front");
        let builder = LockManager::builder(store).fairness(Fairness::Fair);
        let timing = LockTimingOptions::new(Duration::from_secs(60)).check().unwrap();
        let manager = builder.timing(timing).build().unwrap();
        let lock = soon("one look", manager.try_lock("a")).await.unwrap();
        drop(lock);
        // Far less than the ttl of the dead.
        let patience = ttl.duration() / 2;
        let lock = soon("its turn", manager.try_lock_for("a", patience)).await;
        drop(lock.unwrap());
        soon("the end", manager.close()).await;
    }
}
