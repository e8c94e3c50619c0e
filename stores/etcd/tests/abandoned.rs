//! Leases that share a session with others and whose holders stopped asking: they end, whatever befalls the beat that is to
//! end them, and no neighbour pays for it.
use crate::common::{renewal, request, seconds, take};
use crate::sessions::counted;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Acquired, LeaseStore, Renew, Renewed, Ttl};
use tenure_etcd::EtcdStore;
use tenure_testkit::Fault;

/// For a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Renews until a neighbour that was taken a moment ago has not been asked for during a whole ttl, and is due with the next
/// beat.
async fn until_due(store: &EtcdStore, beat: &[Renew], ttl: Ttl) {
    let began = Instant::now();
    while began.elapsed() < ttl.duration() {
        extend(store, beat).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

async fn extend(store: &EtcdStore, beat: &[Renew]) {
    let renewing = || async { store.renew(beat).await.remove(0) };
    let renewed = tenure_testkit::eventually_async(PATIENCE, "a renewal", renewing).await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
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

/// A member that cannot write may still extend. Here only the connection is silent that writes go on.
#[tokio::test]
async fn renewal_does_not_wait_until_an_abandoned_neighbour_is_ended() {
    let (proxy, store, _direct) = counted().await;
    let store = Arc::new(store);
    let ttl = seconds(8);
    let (kept, stuck) = (request("kept", "a", ttl), request("stuck", "b", ttl));
    let kept_token = take(&*store, &kept).await.token;
    take(&*store, &stuck).await;
    let beat = [renewal(&kept, kept_token)];
    until_due(&store, &beat, ttl).await;
    proxy.set(Fault::BlackHole);
    let waiting = tokio::spawn({
        let (store, name) = (Arc::clone(&store), kept.name.clone());
        async move { store.get(&name).await }
    });
    let swallowed = async || (proxy.counts().swallowed_requests > 0).then_some(());
    tenure_testkit::eventually_async(PATIENCE, "a request that is lost", swallowed).await;
    proxy.heal();
    // It is due, and the connection on which its ending goes stays silent.
    let answer = store.renew(&beat).await.remove(0);
    assert!(matches!(answer, Ok(Renewed::Extended { .. })), "{answer:?}");
    assert!(!waiting.is_finished(), "the renewal waited for the ending");
    assert!(waiting.await.unwrap().is_err(), "the connection was silent");
}
