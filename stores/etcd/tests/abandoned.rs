//! Leases that share a session with others and whose holders stopped asking: they end, whatever befalls the
//! beat that is to end them, and no neighbour pays for it.
use crate::common::{Scratch, renewal, request, seconds, shared, take};
use crate::faults::ROUNDS_MAX;
use crate::sessions::counted;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Acquired, Lease, LeaseStore, Renew, Renewed, StoreError, Ttl};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Fault, FaultProxy, RequestFault};
use tokio::task::JoinHandle;

/// For a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Renews until a neighbour that was taken a moment ago has not been asked for during a whole ttl, and is due
/// with the next beat.
async fn until_due(store: &EtcdStore, beat: &[Renew], ttl: Ttl) {
    let due = Instant::now() + ttl.duration();
    // The store counts from before the neighbour was asked for, this from after it was granted: a beat
    // between the two would be the one that ends it.
    let last = due - Duration::from_secs(1);
    while Instant::now() < last {
        extend(store, beat).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    tokio::time::sleep(due.saturating_duration_since(Instant::now())).await;
}

/// At last, as a stall of the machine may end a connection; whoever has lost it is told so at once.
pub async fn extend(store: &EtcdStore, beat: &[Renew]) {
    let renewing = || async { store.renew(beat).await.remove(0) };
    let renewed = tenure_testkit::eventually_async(PATIENCE, "a renewal", renewing).await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
}

/// The connection of everything but renewals falls silent, and no other, unless the machine stalls; a request
/// that waits on it.
pub async fn silence_requests(
    proxy: &FaultProxy,
    store: &Arc<EtcdStore>,
) -> JoinHandle<Result<Option<Lease>, StoreError>> {
    // What the connections still have to say to each other is said: one that is cut short in it stays silent.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = proxy.counts().swallowed_requests;
    proxy.set(Fault::BlackHole);
    let waiting = tokio::spawn({
        let store = Arc::clone(store);
        async move { store.get(&crate::common::name("any")).await }
    });
    let swallowed = async || (proxy.counts().swallowed_requests > before).then_some(());
    tenure_testkit::eventually_async(PATIENCE, "a request that is lost", swallowed).await;
    proxy.heal();
    waiting
}

/// As an engine does whose time for a renewal is over: it drops it where it stands.
#[tokio::test]
async fn abandoned_lease_ends_although_the_renewal_that_was_to_end_it_was_given_up() {
    let (proxy, store, direct) = counted().await;
    let other = direct.store().await;
    let ttl = seconds(8);
    let (kept, stuck) = (request("kept", "a", ttl), request("stuck", "b", ttl));
    let kept_token = take(&store, &kept).await.token;
    let stuck_token = take(&store, &stuck).await.token;
    let beat = [renewal(&kept, kept_token)];
    until_due(&store, &beat, ttl).await;
    // This beat would end it. It is given up, and what it sent is lost.
    proxy.set(Fault::BlackHole);
    let given_up = tokio::time::timeout(Duration::from_millis(400), store.renew(&beat)).await;
    let succeeded = given_up.is_ok_and(|verdicts| verdicts[0].is_ok());
    assert!(!succeeded, "its requests were not lost");
    proxy.heal();
    let rival = request("stuck", "rival", ttl);
    let began = Instant::now();
    let granted = loop {
        extend(&store, &beat).await;
        if let Acquired::Granted(grant) = other.acquire(&rival).await.unwrap() {
            break grant;
        }
        assert!(began.elapsed() < PATIENCE, "its neighbour keeps it");
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    assert!(granted.token > stuck_token);
}

/// What ends it may arrive once more when somebody else holds it: on a session of another process, or on the
/// same.
#[tokio::test]
async fn late_duplicate_of_what_ends_an_abandoned_lease_ends_no_later_term() {
    let (proxy, store, direct) = counted().await;
    let other = direct.store().await;
    let ttl = seconds(8);
    let kept = request("kept", "a", ttl);
    let beat = [renewal(&kept, take(&store, &kept).await.token)];
    let stuck = ["one", "other"].map(|name| request(name, "stuck", ttl));
    for asked in &stuck {
        take(&store, asked).await;
    }
    until_due(&store, &beat, ttl).await;
    let before = proxy.counts().requests;
    proxy.set(Fault::EveryRequest(RequestFault::DuplicateLater(
        Duration::from_millis(1_500),
    )));
    extend(&store, &beat).await;
    let is_free = async |name: &str| {
        let lease = other.get(&crate::common::name(name)).await.unwrap().unwrap();
        lease.remaining.is_zero()
    };
    let both = async || is_free("one").await && is_free("other").await;
    tenure_testkit::eventually_async(PATIENCE, "the end of both", both).await;
    proxy.heal();
    let sent = proxy.counts().requests - before;
    assert!(sent >= 4, "{sent} requests");
    let rivals = ["one", "other"].map(|name| request(name, "rival", ttl));
    let tokens = [
        take(&store, &rivals[0]).await.token,
        take(&other, &rivals[1]).await.token,
    ];
    let arrived = async || {
        // They are their holders' all the time.
        extend(&store, &[renewal(&rivals[0], tokens[0])]).await;
        extend(&other, &[renewal(&rivals[1], tokens[1])]).await;
        proxy.counts().duplicated >= sent
    };
    tenure_testkit::eventually_async(PATIENCE, "the duplicates", arrived).await;
    extend(&store, &[renewal(&rivals[0], tokens[0])]).await;
    extend(&other, &[renewal(&rivals[1], tokens[1])]).await;
}

/// A member that cannot write may still extend. Here only the connection is silent that writes go on.
#[tokio::test]
async fn renewal_does_not_wait_until_an_abandoned_neighbour_is_ended() {
    let (proxy, store, _direct) = counted().await;
    let store = Arc::new(store);
    let ttl = seconds(8);
    let kept = request("kept", "a", ttl);
    let beat = [renewal(&kept, take(&*store, &kept).await.token)];
    // Where the machine stalls, who waits is given up before the renewal comes, or other connections are
    // silent, or none. A renewal that waits for the ending is behind it in every round.
    for round in 0..ROUNDS_MAX {
        take(&*store, &request(&format!("stuck-{round}"), "b", ttl)).await;
        until_due(&store, &beat, ttl).await;
        let waiting = silence_requests(&proxy, &store).await;
        // It is due, and the connection on which its ending goes stays silent.
        let answer = store.renew(&beat).await.remove(0);
        assert!(!matches!(answer, Ok(Renewed::Lost(_))), "{answer:?}");
        let is_before = !waiting.is_finished();
        let was_silent = waiting.await.unwrap().is_err();
        if was_silent && is_before && answer.is_ok() {
            return;
        }
        extend(&store, &beat).await;
    }
    panic!("the renewal waited for the ending in each of {ROUNDS_MAX} rounds");
}

/// Its candidate has left, the look for it has found nothing, and a ttl later nobody could have been granted
/// it any more.
#[tokio::test]
async fn lease_whose_acquisition_arrives_when_nobody_waits_any_more_ends_although_its_neighbours_are_renewed()
{
    let address = shared().await.address(0);
    let [slow, quick] = [(); 2].map(|()| FaultProxy::http2(address.as_str()).unwrap());
    let scratch = Scratch::on(&format!("etcd://{},{}", slow.address(), quick.address()));
    let store = scratch.store().await;
    let direct = Scratch {
        url: shared().await.url(),
        ..scratch
    };
    let other = direct.store().await;
    // Renewals have a connection of their own: it goes the other way.
    slow.set(Fault::Refuse);
    let ttl = seconds(6);
    let kept = request("kept", "a", ttl);
    let token = take(&store, &kept).await.token;
    let beat = [renewal(&kept, token)];
    extend(&store, &beat).await;
    assert!(quick.counts().requests > 0, "renewals go the slow way");

    // It waits at each of its frames: it arrives when a ttl is over, and that it is given up later still.
    slow.set(Fault::Delay {
        to_server: Duration::from_secs(4),
        to_client: Duration::ZERO,
    });
    let late = request("late", "b", ttl);
    let given_up = tokio::time::timeout(Duration::from_millis(400), store.acquire(&late)).await;
    assert!(given_up.is_err(), "{given_up:?}");
    let began = Instant::now();
    let arrived = loop {
        extend(&store, &beat).await;
        if let Some(lease) = other.get(&late.name).await.unwrap() {
            break lease;
        }
        assert!(began.elapsed() < PATIENCE, "it never arrived");
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    let rival = request("late", "rival", ttl);
    let began = Instant::now();
    let granted = loop {
        if let Acquired::Granted(grant) = other.acquire(&rival).await.unwrap() {
            break grant;
        }
        assert!(began.elapsed() < PATIENCE, "its neighbour keeps it");
        extend(&store, &beat).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    assert!(granted.token > arrived.token);
}
