//! Leading through the faults of a real etcd, of its cluster, and of the network before it.
use crate::believed::until_lost;
use std::sync::Arc;
use std::time::Duration;
use tenure::etcd::EtcdStore;
use tenure::{Authority, Cause, Election, Event, Leadership, LeaseName, SharedStore, Timing, Ttl, clock_now};
use tenure_testkit::{Etcd, EtcdOptions, Fault, FaultProxy, RequestFault, eventually, eventually_async};
use tokio::sync::broadcast::Receiver;

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
    Arc::new(soon("connecting", EtcdStore::connect(url)).await.unwrap())
}

fn election(store: SharedStore, candidate: &str, timing: Timing) -> Election {
    Election::builder("job", store)
        .candidate(candidate)
        .timing(timing)
        .build()
        .unwrap()
}

async fn behind_a_proxy() -> (Etcd, FaultProxy, Election, Election) {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let proxy = FaultProxy::http2(etcd.address(0)).unwrap();
    let through = connect(&format!("etcd://{}", proxy.address())).await;
    let leader = election(through, "leader", timing());
    let standby = election(connect(&etcd.url()).await, "standby", timing());
    (etcd, proxy, leader, standby)
}

/// Past the end that the lease had before the fault, it is still held, and was renewed.
async fn assert_still_leads(leadership: &Leadership, events: &mut Receiver<Event>, timing: Timing) {
    tokio::time::sleep(timing.ttl().duration() + Duration::from_secs(2)).await;
    assert!(
        matches!(leadership.authority(), Authority::Held { .. }),
        "{leadership:?}"
    );
    let mut renewals = 0;
    while let Ok(event) = events.try_recv() {
        assert!(!matches!(event, Event::Ended { .. }), "{event:?}");
        renewals += u32::from(matches!(event, Event::Renewed { .. }));
    }
    assert!(renewals >= 1, "{renewals} renewals");
}

#[tokio::test]
async fn a_silent_etcd_ends_the_term_at_its_deadline_and_the_standby_takes_over() {
    let (_etcd, proxy, leader, standby) = behind_a_proxy().await;
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
async fn a_connection_to_etcd_that_falls_silent_costs_no_leadership() {
    for fault in [Fault::BlackHole, Fault::HalfOpen] {
        let (_etcd, proxy, leader, standby) = behind_a_proxy().await;
        let leadership = soon("the campaign", leader.campaign()).await.unwrap();
        let mut events = leader.events();
        let campaign = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
        let swallowed = || proxy.counts().swallowed_requests + proxy.counts().swallowed_replies;
        let before = swallowed();
        proxy.set(fault);
        // One renewal falls into the hole; the connection stays silent for good.
        tenure_testkit::eventually_async(Duration::from_secs(30), "a renewal in the hole", || async {
            swallowed() > before
        })
        .await;
        proxy.heal();
        assert_still_leads(&leadership, &mut events, timing()).await;
        assert!(!campaign.is_finished(), "the standby leads, too");
        campaign.abort();
    }
}

#[tokio::test]
async fn a_lost_reply_to_the_acquisition_in_etcd_costs_no_second_term() {
    let (_etcd, proxy, leader, _standby) = behind_a_proxy().await;
    // The answers to what a campaign asks first are lost: one of them, two, and so on.
    for lost in 1..=4 {
        let store = connect(&format!("etcd://{}", proxy.address())).await;
        let other = Election::builder(&*format!("other-{lost}"), store)
            .candidate("leader")
            .timing(timing())
            .build()
            .unwrap();
        proxy.next_requests(lost, RequestFault::CutAfter);
        let leadership = soon("the campaign", other.campaign()).await.unwrap();
        assert_eq!(leadership.terms(), 1, "the same attempt found its own term");
        proxy.heal();
    }
    assert!(proxy.counts().cut_after >= 4);
    drop(leader);
}

#[tokio::test]
async fn a_restarted_etcd_and_cut_connections_cost_no_leadership() {
    let (mut etcd, proxy, leader, _standby) = behind_a_proxy().await;
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    proxy.cut_connections();
    eventually_async(Duration::from_secs(30), "the connections are cut", || async {
        proxy.counts().cut_connections > 0
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    etcd.restart(0).await.unwrap();
    assert_still_leads(&leadership, &mut events, timing()).await;
}

#[tokio::test]
async fn a_cluster_whose_leader_is_killed_or_frozen_costs_no_leadership() {
    let mut etcd = Etcd::start(EtcdOptions::three()).await.unwrap();
    let store = connect(&etcd.url()).await;
    // On a busy machine the members take seconds to elect another.
    let timing = Timing::of(Ttl::from_secs(12).unwrap());
    let leader = election(store, "leader", timing);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let mut events = leader.events();
    let killed = eventually(Duration::from_secs(20), "a leader", || etcd.leader());
    etcd.kill(killed);
    assert_still_leads(&leadership, &mut events, timing).await;
    etcd.restart(killed).await.unwrap();
    // With the next that is frozen, the majority needs the one that has come back: it has caught up when a
    // read by it is answered.
    let back = connect(&format!("etcd://{}", etcd.address(killed))).await;
    let name = LeaseName::new("job").unwrap();
    eventually_async(Duration::from_secs(20), "it has caught up", || async {
        back.get(&name).await.is_ok()
    })
    .await;
    let frozen = eventually(Duration::from_secs(20), "a leader", || etcd.leader());
    etcd.freeze(frozen);
    assert_still_leads(&leadership, &mut events, timing).await;
    etcd.thaw(frozen);
}

#[tokio::test]
async fn a_release_in_etcd_wakes_the_standby_also_after_a_cut() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let proxy = FaultProxy::http2(etcd.address(0)).unwrap();
    let long = Timing::of(Ttl::from_secs(120).unwrap());
    let leader = election(connect(&etcd.url()).await, "leader", long);
    let through = connect(&format!("etcd://{}", proxy.address())).await;
    let standby = election(through, "standby", long);
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let campaign = tokio::spawn(async move { standby.campaign().await.map(|won| won.token()) });
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.cut_connections();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let token = leadership.token();
    leadership.step_down().await;
    let next = soon("the standby's turn, of a lease of two minutes", campaign)
        .await
        .unwrap()
        .unwrap();
    assert!(next > token);
}

/// Whoever waits is told when the session of a dead holder ends, and looks no later than then.
#[tokio::test]
async fn the_end_of_a_session_in_etcd_wakes_the_standby() {
    let (_etcd, proxy, leader, standby) = behind_a_proxy().await;
    let leadership = soon("the campaign", leader.campaign()).await.unwrap();
    let campaign = tokio::spawn(async move { (standby.campaign().await.unwrap(), clock_now(), standby) });
    tokio::time::sleep(Duration::from_millis(500)).await;
    proxy.set(Fault::Refuse);
    proxy.cut_connections();
    let (taken, (until, _loss)) = tokio::join!(
        soon("the take-over", campaign),
        soon("the loss", until_lost(&leadership))
    );
    let (won, when, _standby) = taken.unwrap();
    assert!(won.token() > leadership.token());
    assert!(when >= until, "it was taken while its holder believed in it");
}
