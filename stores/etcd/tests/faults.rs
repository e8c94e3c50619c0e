//! Real faults: lost replies, silent, frozen and killed members. Errors come back bounded, tokens rise.
use crate::common::{Scratch, giving_back, renewal, request, seconds, shared, take};
use std::time::{Duration, Instant};
use tenure_core::{
    Certainty, Change, Fault as StoreFault, Interest, LeaseStore, Released, Renewed, Scope, WatchEvent,
};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Etcd, EtcdOptions, Fault, FaultProxy, RequestFault};

/// The store's own bound on a request is 6 s, connecting included; the rest is for a loaded machine.
pub const BOUND: Duration = Duration::from_secs(20);

/// Less than a request waits on a connection that is silent.
const AT_ONCE: Duration = Duration::from_secs(2);

/// What the store waits for a member to accept a connection: a failure that came sooner is no stall's.
const STALL_MIN: Duration = Duration::from_secs(1);

/// How often a machine may stall while something has to work at once.
pub const ROUNDS_MAX: u64 = 5;

/// A proxy in front of the shared server.
pub async fn proxied() -> (FaultProxy, EtcdStore) {
    let proxy = FaultProxy::http2(shared().await.address(0)).unwrap();
    let scratch = Scratch::on(&format!("etcd://{}", proxy.address()));
    let store = scratch.store().await;
    (proxy, store)
}

pub async fn bounded<T>(what: &str, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let answer = work.await;
    assert!(began.elapsed() < BOUND, "{what} took {:?}", began.elapsed());
    answer
}

/// Asks until the store answers again.
pub async fn read_again(store: &EtcdStore, lease: &str) -> Option<tenure_core::Lease> {
    let name = crate::common::name(lease);
    tenure_testkit::eventually_async(BOUND, "an answer", || store.get(&name)).await
}

/// Ends the connection that a watch listens on, and returns when it has begun to dial again. Through a proxy
/// that holds everything back nothing was heard before, and the dial waits: one that is refused is tried so
/// few times that the watch would be over before a slow test has written what it is to miss.
async fn cut_while_nothing_passes(proxy: &FaultProxy) {
    let before = proxy.counts().connections;
    proxy.cut_connections();
    let dials = || async { proxy.counts().connections > before };
    tenure_testkit::eventually_async(BOUND, "another dial", dials).await;
    proxy.heal();
}

/// The next event, in time.
async fn next(watch: &mut Box<dyn tenure_core::Watch>) -> WatchEvent {
    let told = tokio::time::timeout(BOUND, watch.next()).await;
    told.expect("in time").expect("the watch goes on")
}

#[tokio::test]
async fn lost_reply_of_an_acquisition_is_resolved_by_its_attempt_in_etcd() {
    let (proxy, store) = proxied().await;
    // A session is there, so that the next request is the acquisition itself.
    take(&store, &request("warm", "holder", seconds(60))).await;
    let asked = request("job", "holder", seconds(60));
    proxy.next_requests(2, RequestFault::CutAfter);
    let lost = bounded("the lost reply", store.acquire(&asked))
        .await
        .unwrap_err();
    assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
    assert!(lost.message.contains("job"), "{lost}");
    assert!(proxy.counts().cut_after >= 1, "the fault happened");
    proxy.heal();
    let written = read_again(&store, "job")
        .await
        .expect("it was applied all the same");
    let grant = take(&store, &asked).await;
    assert_eq!((grant.token, grant.again, grant.terms), (written.token, true, 1));
}

#[tokio::test]
async fn request_that_never_arrived_leaves_nothing_and_the_next_one_is_the_first() {
    let (proxy, store) = proxied().await;
    take(&store, &request("warm", "holder", seconds(60))).await;
    let asked = request("job", "holder", seconds(60));
    proxy.next_requests(2, RequestFault::CutBefore);
    let lost = bounded("the lost request", store.acquire(&asked))
        .await
        .unwrap_err();
    assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
    proxy.heal();
    assert_eq!(read_again(&store, "job").await, None);
    let grant = take(&store, &asked).await;
    assert_eq!((grant.again, grant.terms), (false, 1));
}

#[tokio::test]
async fn lost_replies_of_renewal_and_release_are_resolved_in_etcd() {
    let (proxy, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    proxy.next_requests(2, RequestFault::CutAfter);
    let renewals = [renewal(&asked, grant.token)];
    let lost = bounded("the lost reply", store.renew(&renewals)).await;
    assert!(lost[0].is_err(), "{lost:?}");
    proxy.heal();
    let again = tenure_testkit::eventually_async(BOUND, "a renewal", || async {
        store.renew(&renewals).await.remove(0)
    })
    .await;
    assert!(matches!(again, Renewed::Extended { .. }), "{again:?}");
    proxy.next_requests(1, RequestFault::CutAfter);
    let releases = [giving_back(&asked, grant.token)];
    let lost = bounded("the lost reply", store.release(&releases)).await;
    assert_eq!(lost[0].as_ref().unwrap_err().certainty, Certainty::Unknown);
    let again = tenure_testkit::eventually_async(BOUND, "a release", || async {
        store.release(&releases).await.remove(0)
    })
    .await;
    assert_eq!(again, Released::Vacated);
}

/// Whether it worked at once; not, where it took so long that the machine may have stalled.
///
/// # Panics
/// If it failed sooner than a stall could have made it fail.
async fn worked_at_once<T: std::fmt::Debug>(
    work: impl Future<Output = T>,
    is_right: impl Fn(&T) -> bool,
) -> bool {
    let began = Instant::now();
    let answer = work.await;
    let took = began.elapsed();
    assert!(is_right(&answer) || took >= STALL_MIN, "in {took:?}: {answer:?}");
    is_right(&answer) && took < AT_ONCE
}

/// The driver alone would wait for ever.
#[tokio::test]
async fn silent_network_of_etcd_is_given_up_and_works_again_at_once() {
    let (proxy, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let renewals = [renewal(&asked, grant.token)];
    for fault in [Fault::BlackHole, Fault::HalfOpen, Fault::Hold] {
        let mut rounds = 0..ROUNDS_MAX;
        loop {
            rounds
                .next()
                .expect("it works again at once in one of the rounds");
            proxy.set(fault);
            let (renewed, read) = bounded("the silence", async {
                tokio::join!(store.renew(&renewals), store.get(&asked.name))
            })
            .await;
            assert!(
                renewed[0].is_err() && read.is_err(),
                "{fault:?}: {renewed:?}, {read:?}"
            );
            proxy.heal();
            let again = async {
                let renewed = store.renew(&renewals).await.remove(0);
                (renewed, store.get(&asked.name).await)
            };
            let is_right = |(renewed, read): &(Result<Renewed, _>, Result<_, _>)| {
                matches!(renewed, Ok(Renewed::Extended { .. })) && read.is_ok()
            };
            if worked_at_once(again, is_right).await {
                break;
            }
        }
    }
}

/// Callers that each wait less than the store's own bound give a silent connection up together.
#[tokio::test]
async fn silent_connection_is_replaced_although_every_caller_gives_up_first() {
    let (proxy, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    take(&store, &asked).await;
    for _round in 0..ROUNDS_MAX {
        proxy.set(Fault::BlackHole);
        for _caller in 0..4 {
            let patience = Duration::from_millis(150);
            let answer = tokio::time::timeout(patience, store.get(&asked.name)).await;
            assert!(!matches!(answer, Ok(Ok(_))), "{answer:?}");
        }
        proxy.heal();
        if worked_at_once(store.get(&asked.name), |answer| matches!(answer, Ok(Some(_)))).await {
            return;
        }
    }
    panic!("the silent connection was not replaced in {ROUNDS_MAX} rounds");
}

#[tokio::test]
async fn killed_etcd_keeps_what_it_confirmed_and_terms_outlive_its_restart() {
    let mut etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let store = Scratch::on(&etcd.url()).store().await;
    let held = request("held", "holder", seconds(30));
    let vacant = request("vacant", "holder", seconds(30));
    let (kept, ended) = (take(&store, &held).await, take(&store, &vacant).await);
    assert_eq!(
        store.release(&[giving_back(&vacant, ended.token)]).await[0],
        Ok(Released::Vacated)
    );
    etcd.kill(0);
    let failed = bounded("a dead server", store.get(&held.name)).await.unwrap_err();
    assert_eq!(failed.fault, StoreFault::Unreachable, "{failed}");
    etcd.restart(0).await.unwrap();
    let lease = read_again(&store, "held").await.unwrap();
    assert_eq!(lease.token, kept.token);
    let renewed = store.renew(&[renewal(&held, kept.token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let next = take(&store, &request("vacant", "next", seconds(30))).await;
    assert!(next.token > ended.token && next.terms == 2, "{next:?}");
}

#[tokio::test]
async fn members_that_are_down_or_frozen_are_passed_over() {
    let mut etcd = Etcd::start(EtcdOptions::three()).await.unwrap();
    let store = Scratch::on(&etcd.url()).store().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let renewals = [renewal(&asked, grant.token)];
    let first = tenure_testkit::eventually(BOUND, "a leader", || etcd.leader());
    etcd.kill(first);
    for frozen in [None, Some(())] {
        if frozen.is_some() {
            etcd.restart(first).await.unwrap();
            etcd.freeze(tenure_testkit::eventually(BOUND, "a leader", || etcd.leader()));
        }
        let renewed = bounded(
            "a renewal",
            tenure_testkit::eventually_async(BOUND, "a renewal", || async {
                store.renew(&renewals).await.remove(0)
            }),
        )
        .await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        assert_eq!(read_again(&store, "job").await.unwrap().token, grant.token);
    }
}

/// A leader that has lost its cluster goes on extending sessions for a while: what it says alone must not be
/// believed.
#[tokio::test]
async fn extension_by_a_leader_without_its_cluster_is_not_believed() {
    let etcd = Etcd::start(EtcdOptions::three().with("--election-timeout 5000"))
        .await
        .unwrap();
    let leader = tenure_testkit::eventually(BOUND, "a leader", || etcd.leader());
    let store = Scratch::on(&format!("etcd://{}", etcd.address(leader)))
        .store()
        .await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let session = crate::common::range(
        &etcd,
        leader,
        store.traits().location.split_once('/').unwrap().1,
        "u",
    );
    let session = session
        .iter()
        .find_map(|kv| kv["lease"].as_str())
        .expect("a key with a session")
        .to_owned();
    for follower in (0..etcd.size()).filter(|member| *member != leader) {
        etcd.freeze(follower);
    }
    // So that this proves something: the server itself says that it has extended the session, which has a
    // second to spare.
    let kept = etcd
        .post(
            leader,
            "/v3/lease/keepalive",
            &format!("{{\"ID\":\"{session}\"}}"),
        )
        .unwrap();
    assert!(kept.contains("\"TTL\":\"61\""), "{kept}");
    let renewed = bounded("a renewal", store.renew(&[renewal(&asked, grant.token)])).await;
    assert!(renewed[0].is_err(), "{renewed:?}");
}

#[tokio::test]
async fn watch_goes_on_after_a_cut_and_loses_no_event() {
    let (proxy, store) = proxied().await;
    let direct_url = store
        .traits()
        .location
        .replace(&proxy.address().to_string(), &shared().await.address(0));
    let direct = EtcdStore::connect(&format!("etcd://{direct_url}")).await.unwrap();
    let asked = request("job", "holder", seconds(60));
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .unwrap();
    proxy.set(Fault::Hold);
    let grant = take(&direct, &asked).await;
    direct
        .release(&[giving_back(&asked, grant.token)])
        .await
        .remove(0)
        .unwrap();
    cut_while_nothing_passes(&proxy).await;
    for wanted in [Change::Taken, Change::Vacated] {
        let told = next(&mut watch).await;
        assert_eq!(
            told,
            WatchEvent::Changed {
                name: asked.name.clone(),
                change: wanted,
                token: Some(grant.token)
            }
        );
    }
}

#[tokio::test]
async fn compaction_under_a_watch_that_was_cut_is_told_as_a_gap() {
    // Of its own: other tests' watches are not to lose their history.
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let proxy = FaultProxy::http2(etcd.address(0)).unwrap();
    let through = format!("etcd://{}/x", proxy.address());
    let store = EtcdStore::connect(&through).await.unwrap();
    let direct = EtcdStore::connect(&format!("{}/x", etcd.url())).await.unwrap();
    let asked = request("job", "holder", seconds(60));
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .unwrap();
    proxy.set(Fault::Hold);
    let grant = take(&direct, &asked).await;
    // What is compacted lies before it: a watch from the very revision would still be served.
    let later = take(&direct, &request("later", "holder", seconds(60))).await;
    let compacted = etcd
        .post(
            0,
            "/v3/kv/compaction",
            &format!("{{\"revision\":\"{}\"}}", later.token),
        )
        .unwrap();
    assert!(compacted.contains("header"), "{compacted}");
    cut_while_nothing_passes(&proxy).await;
    let told = next(&mut watch).await;
    assert_eq!(told, WatchEvent::Gap);
    // And goes on from there.
    assert_eq!(
        next(&mut watch).await,
        WatchEvent::Gap,
        "what came before it was in place again"
    );
    direct
        .release(&[giving_back(&asked, grant.token)])
        .await
        .remove(0)
        .unwrap();
    let told = next(&mut watch).await;
    assert!(
        matches!(
            told,
            WatchEvent::Changed {
                change: Change::Vacated,
                ..
            }
        ),
        "{told:?}"
    );
}

/// What lets every stream begin and ends it at once, as a proxy may, is not dialled as often as it can be.
#[tokio::test]
async fn watch_whose_streams_break_as_they_begin_is_opened_again_ever_more_slowly() {
    let (proxy, store) = proxied().await;
    let _watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();
    let (before, began) = (proxy.counts().connections, Instant::now());
    for _cut in 0..100 {
        proxy.cut_connections();
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let opened = proxy.counts().connections - before;
    // Of the three seconds that it takes at least: each pause ends with up to five dials, as the cuts may
    // break these, too. By then it waits as long between two, where the machine takes more. Whoever dials as
    // often as it can does so a hundred times.
    let opened_max = 15 + 5 * began.elapsed().as_secs().saturating_sub(3);
    assert!(
        (1..=opened_max).contains(&opened),
        "{opened} times in {:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn watch_that_cannot_be_resumed_says_that_it_is_over() {
    let (proxy, store) = proxied().await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();
    proxy.set(Fault::Refuse);
    proxy.cut_connections();
    let told = tokio::time::timeout(Duration::from_secs(30), watch.next())
        .await
        .expect("in time");
    let over = told.expect_err("nobody can be reached");
    assert_eq!(over.fault, StoreFault::Unreachable, "{over}");
    proxy.heal();
    assert!(
        store
            .watch(&Scope::Prefix(String::new()), Interest::Everything)
            .await
            .is_ok()
    );
}
