//! Many leases on one session: what a beat costs, and that each lease has a verdict and an end of its own.
use crate::abandoned::extend;
use crate::common::{Scratch, giving_back, remove, renewal, request, seconds, shared, take};
use crate::faults::ROUNDS_MAX;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, Ask, Asked, End, FencingToken, LeaseStore, Renew, Renewed, Wish};
use tenure_etcd::EtcdStore;
use tenure_testkit::FaultProxy;

/// Long: whoever is not renewed for a ttl is ended by its neighbours' beat, and a busy machine takes its
/// time.
pub const TTL_SECS: u64 = 900;

/// Acquisitions under way at a time while many leases are taken.
const AT_ONCE: usize = 32;

/// Takes as many leases, each by a candidate of its own, in the order of their numbers.
pub async fn take_many(store: &Arc<EtcdStore>, count: usize) -> Vec<(Acquire, FencingToken)> {
    let mut held = Vec::new();
    let mut numbers = 0..count;
    loop {
        let mut taking = tokio::task::JoinSet::new();
        for number in numbers.by_ref().take(AT_ONCE) {
            let store = Arc::clone(store);
            taking.spawn(async move {
                let asked = request(&format!("lock-{number:05}"), "holder", seconds(TTL_SECS));
                let token = take(&*store, &asked).await.token;
                (asked, token)
            });
        }
        if taking.is_empty() {
            held.sort_by(|(one, _), (other, _): &(Acquire, FencingToken)| one.name.cmp(&other.name));
            return held;
        }
        held.extend(taking.join_all().await);
    }
}

pub fn renewals(held: &[(Acquire, FencingToken)]) -> Vec<Renew> {
    held.iter().map(|(asked, token)| renewal(asked, *token)).collect()
}

/// A store whose requests a proxy counts, and the way to the same leases past it.
pub async fn counted() -> (FaultProxy, EtcdStore, Scratch) {
    let etcd = shared().await;
    let proxy = FaultProxy::http2(etcd.address(0)).unwrap();
    let scratch = Scratch::on(&format!("etcd://{}", proxy.address()));
    let direct = Scratch {
        url: etcd.url(),
        ..scratch.clone()
    };
    (proxy, scratch.store().await, direct)
}

#[tokio::test]
async fn ten_thousand_leases_cost_three_requests_a_beat_and_each_has_a_verdict() {
    let (proxy, store, direct) = counted().await;
    let (store, other) = (Arc::new(store), direct.store().await);
    let held = take_many(&store, 10_000).await;
    let beat = renewals(&held);
    // Connecting asks something, too.
    store.renew(&beat[..1]).await.remove(0).unwrap();
    let before = proxy.counts().requests;
    let verdicts = store.renew(&beat).await;
    let cost = proxy.counts().requests - before;
    assert!(
        verdicts
            .iter()
            .all(|verdict| matches!(verdict, Ok(Renewed::Extended { .. })))
    );
    assert!(cost <= 3, "{cost} requests");

    // One is released by somebody else, one's keys are removed by hand, one is asked to step down.
    let (released, removed, asked) = (17, 4_711, 9_999);
    other
        .release(&[giving_back(&held[released].0, held[released].1)])
        .await
        .remove(0)
        .unwrap();
    let name = held[removed].0.name.as_str();
    let (from, end) = (direct.key(name, "\tholder"), direct.key(name, "\tholder\0"));
    assert_eq!(remove(shared().await, 0, &from, &end), 1);
    let wish = Ask {
        name: held[asked].0.name.clone(),
        token: held[asked].1,
    };
    assert_eq!(other.ask(&wish).await, Ok(Asked::Noted));
    let before = proxy.counts().requests;
    let verdicts = store.renew(&beat).await;
    let cost = proxy.counts().requests - before;
    for (place, verdict) in verdicts.iter().enumerate() {
        let expected = match verdict {
            Ok(Renewed::Lost(Some(lease))) if place == released => lease.released,
            Ok(Renewed::Lost(Some(lease))) if place == removed => lease.remaining.is_zero(),
            Ok(Renewed::Extended { wish, .. }) if place == asked => *wish == Wish::StepDown,
            Ok(Renewed::Extended { wish, .. }) => {
                *wish == Wish::Nothing && place != released && place != removed
            }
            Ok(Renewed::Lost(_)) | Err(_) => false,
        };
        assert!(expected, "lease {place}: {verdict:?}");
    }
    assert!(cost <= 10, "{cost} requests");
}

/// What this process held and hands on is known by the very key that it has put: nothing has to be read
/// before.
#[tokio::test]
async fn lease_that_is_handed_on_costs_one_request() {
    let (proxy, store, direct) = counted().await;
    let mut asked = request("job", "holder", seconds(TTL_SECS));
    let mut token = take(&store, &asked).await.token;
    for terms in 2..10 {
        asked.attempt = asked.attempt.next();
        let before = proxy.counts().requests;
        let grant = take(&store, &asked).await;
        let cost = proxy.counts().requests - before;
        assert_eq!((grant.terms, grant.again), (terms, false));
        let predecessor = grant.predecessor.expect("a term was before it");
        assert_eq!((predecessor.token, predecessor.end), (token, End::Released));
        assert!(grant.token > token);
        token = grant.token;
        // One more where the session was extended beside it, once a second.
        assert!(cost <= 2, "{cost} requests");
        if cost == 1 {
            let seen = direct.store().await.get(&asked.name).await.unwrap().unwrap();
            assert_eq!((seen.token, seen.attempt), (token, asked.attempt));
            return;
        }
    }
    panic!("each of them cost more than one request");
}

/// What a batch of either size says of leases whose session is over.
#[tokio::test]
async fn leases_whose_session_was_revoked_are_all_lost() {
    let etcd = shared().await;
    for count in [3, 150] {
        let scratch = Scratch::new().await;
        let store = Arc::new(scratch.store().await);
        let held = take_many(&store, count).await;
        let keys = crate::common::range(etcd, 0, &scratch.key("", ""), &scratch.key("~", ""));
        let session = keys
            .iter()
            .find_map(|kv| kv["lease"].as_str())
            .expect("a session");
        etcd.post(0, "/v3/lease/revoke", &format!("{{\"ID\":\"{session}\"}}"))
            .unwrap();
        let verdicts = store.renew(&renewals(&held)).await;
        for verdict in verdicts {
            let Ok(Renewed::Lost(Some(lease))) = verdict else {
                panic!("{count}: {verdict:?}")
            };
            assert!(lease.remaining.is_zero() && !lease.released, "{lease:?}");
        }
        // The process goes on with a session of its next.
        let next = take(&*store, &request("lock-00000", "next", seconds(TTL_SECS))).await;
        assert!(next.token > held[0].1);
    }
}

/// A stuck worker's lease must not live by its neighbours' renewals.
#[tokio::test]
async fn lease_that_nobody_renews_ends_although_its_neighbours_are_renewed() {
    let scratch = Scratch::new().await;
    let (store, other) = (Arc::new(scratch.store().await), scratch.store().await);
    let ttl = seconds(6);
    let (kept, stuck) = (request("kept", "a", ttl), request("stuck", "b", ttl));
    let kept_token = take(&*store, &kept).await.token;
    let sent = Instant::now();
    let stuck_token = take(&*store, &stuck).await.token;
    let rival = request("stuck", "rival", ttl);
    // Counted, and not timed, as a beat of a loaded machine may take long: a ttl and a beat are enough.
    let mut beats_after_ttl = 0;
    let (taken, after) = loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        beats_after_ttl += u32::from(sent.elapsed() > ttl.duration());
        assert!(beats_after_ttl <= 20, "its neighbours keep it");
        extend(&store, &[renewal(&kept, kept_token)]).await;
        if let Acquired::Granted(grant) = other.acquire(&rival).await.unwrap() {
            break (grant, sent.elapsed());
        }
    };
    assert!(
        taken.token > stuck_token && after >= ttl.duration(),
        "after {after:?}"
    );
    // And its holder is told, should it ever ask again.
    let lost = store.renew(&[renewal(&stuck, stuck_token)]).await.remove(0);
    assert!(
        matches!(&lost, Ok(Renewed::Lost(Some(lease))) if lease.token == taken.token),
        "{lost:?}"
    );
}

/// The answer to an acquisition that nobody heard is no reason to hold the lease for ever.
#[tokio::test]
async fn lease_whose_acquisition_nobody_heard_of_ends_although_its_neighbours_are_renewed() {
    let scratch = Scratch::new().await;
    let (store, other) = (Arc::new(scratch.store().await), scratch.store().await);
    let ttl = seconds(6);
    let kept = request("kept", "a", ttl);
    let kept_token = take(&*store, &kept).await.token;
    let unheard = request("unheard", "b", ttl);
    tenure_testkit::eventually_async(Duration::from_secs(20), "an answer that nobody hears", || async {
        let _given_up = tokio::time::timeout(Duration::from_micros(300), store.acquire(&unheard)).await;
        other.get(&unheard.name).await.unwrap()
    })
    .await;
    let began = Instant::now();
    while other
        .get(&unheard.name)
        .await
        .unwrap()
        .is_some_and(|lease| !lease.remaining.is_zero())
    {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "its neighbours keep it"
        );
        extend(&store, &[renewal(&kept, kept_token)]).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn renewal_with_another_ttl_moves_the_lease_and_leaves_its_neighbours() {
    let scratch = Scratch::new().await;
    let store = Arc::new(scratch.store().await);
    let held = take_many(&store, 2).await;
    let mut longer = renewal(&held[0].0, held[0].1);
    longer.ttl = seconds(2 * TTL_SECS);
    let verdicts = store
        .renew(&[longer.clone(), renewal(&held[1].0, held[1].1)])
        .await;
    let ttls: Vec<u64> = verdicts
        .iter()
        .map(|verdict| match verdict {
            Ok(Renewed::Extended { ttl, .. }) => ttl.as_millis(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ttls, [2_000 * TTL_SECS, 1_000 * TTL_SECS]);
    let remaining = |lease: Option<tenure_core::Lease>| lease.unwrap().remaining;
    assert!(remaining(store.get(&held[0].0.name).await.unwrap()) > Duration::from_secs(TTL_SECS));
    assert!(remaining(store.get(&held[1].0.name).await.unwrap()) <= Duration::from_secs(TTL_SECS));
    assert!(matches!(
        store.renew(&[longer]).await[0],
        Ok(Renewed::Extended { .. })
    ));
}

/// As after a change of its process's connection: the lease is on a session that this store does not know.
#[tokio::test]
async fn batch_that_names_a_lease_of_another_store_twice_extends_it_twice() {
    let scratch = Scratch::new().await;
    let (store, other) = (scratch.store().await, scratch.store().await);
    let asked = request("job", "a", seconds(60));
    let token = take(&store, &asked).await.token;
    let twice = [renewal(&asked, token), renewal(&asked, token)];
    for _beat in 0..2 {
        for verdict in other.renew(&twice).await {
            assert!(matches!(verdict, Ok(Renewed::Extended { .. })), "{verdict:?}");
        }
    }
    assert_eq!(store.get(&asked.name).await.unwrap().unwrap().token, token);
}

/// Whoever waits for a session holds up no renewal of another.
#[tokio::test]
async fn renewal_does_not_wait_for_a_session_that_is_being_asked_for() {
    let proxy = FaultProxy::http2(shared().await.address(0)).unwrap();
    let store = Arc::new(Scratch::on(&format!("etcd://{}", proxy.address())).store().await);
    let held = request("held", "a", seconds(60));
    let token = take(&*store, &held).await.token;
    let beat = [renewal(&held, token)];
    // Where the machine stalls, who waits is given up before the renewal comes, or what the renewals'
    // connection has to say is lost, too. A renewal that waits for the other is behind it in every round.
    for round in 0..ROUNDS_MAX {
        extend(&store, &beat).await;
        // What the connections still have to say to each other is said; then that of everything but renewals
        // falls silent, and somebody asks for a session on it.
        tokio::time::sleep(Duration::from_millis(500)).await;
        proxy.set(tenure_testkit::Fault::BlackHole);
        let before = proxy.counts().swallowed_requests;
        let waiting = tokio::spawn({
            let (store, asked) = (Arc::clone(&store), request("new", "b", seconds(90 + round)));
            async move { store.acquire(&asked).await }
        });
        let swallowed = || async { proxy.counts().swallowed_requests > before };
        tenure_testkit::eventually_async(Duration::from_secs(20), "a request that is lost", swallowed).await;
        proxy.heal();
        let renewed = store.renew(&beat).await.remove(0);
        let is_before = !waiting.is_finished();
        let _answer = waiting.await.unwrap();
        if is_before && matches!(renewed, Ok(Renewed::Extended { .. })) {
            return;
        }
    }
    panic!("the renewal waited for it in each of {ROUNDS_MAX} rounds");
}

/// A session has a second to spare: acquisitions in a row extend it once in that, and the last of them lasts
/// its whole ttl all the same, though nobody extends it again.
#[tokio::test]
async fn acquisitions_in_a_row_extend_the_session_once_a_second_and_last_their_whole_ttl() {
    const COUNT: u64 = 20;
    let (proxy, store, direct) = counted().await;
    let other = direct.store().await;
    let ttl = Duration::from_secs(10);
    let lease = |name: &str| request(name, "holder", seconds(ttl.as_secs()));
    take(&store, &lease("first")).await;
    let (began, before) = (Instant::now(), proxy.counts().requests);
    for number in 0..COUNT {
        take(&store, &lease(&format!("lock-{number}"))).await;
    }
    let cost = proxy.counts().requests - before;
    assert!(
        cost <= COUNT + began.elapsed().as_secs() + 1,
        "{COUNT} acquisitions cost {cost} requests in {:?}",
        began.elapsed()
    );
    // As late after the last extension as may be.
    tokio::time::sleep(Duration::from_millis(900)).await;
    let asked_at = Instant::now();
    let last = lease("last");
    let grant = take(&store, &last).await;
    assert_eq!(grant.ttl.duration(), ttl);
    drop(store);
    tokio::time::sleep(
        (asked_at + ttl - Duration::from_millis(50)).saturating_duration_since(Instant::now()),
    )
    .await;
    let left = other.get(&last.name).await.unwrap().unwrap();
    if asked_at.elapsed() < ttl {
        assert!(
            !left.remaining.is_zero(),
            "it ended {:?} after it was asked for",
            asked_at.elapsed()
        );
    }
}
