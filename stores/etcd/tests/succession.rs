//! Terms of one lease after each other on the same session: each is told what became of it, and none outlives
//! its holder.
use crate::abandoned::{extend, silence_requests};
use crate::common::{Scratch, giving_back, renewal, request, seconds, take};
use crate::faults::ROUNDS_MAX;
use crate::sessions::{TTL_SECS, counted, renewals, take_many};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Acquire, LeaseStore, Renewed};
use tenure_testkit::RequestFault;

/// More than a batch whose keys are read one by one.
const MANY: usize = 150;

/// What a batch knows of each lease is whether its holder's key is on the session, and the successor's is.
#[tokio::test]
async fn term_whose_successor_sits_on_the_same_session_is_lost_in_a_batch_of_many() {
    let (proxy, store, direct) = counted().await;
    let (store, other) = (Arc::new(store), direct.store().await);
    let held = take_many(&store, MANY).await;
    let beat = renewals(&held);
    let (heard, unheard) = (17, 43);
    for place in [heard, unheard] {
        let (asked, token) = &held[place];
        other
            .release(&[giving_back(asked, *token)])
            .await
            .remove(0)
            .unwrap();
    }
    let rival = |place: usize| request(held[place].0.name.as_str(), "rival", seconds(TTL_SECS));
    let (rival, doubtful) = (rival(heard), rival(unheard));
    let granted = take(&*store, &rival).await;
    // That this one was taken, too, the store is not told. It has seen that it is free, so that it asks for
    // nothing before.
    store.get(&doubtful.name).await.unwrap();
    proxy.next_requests(2, RequestFault::CutAfter);
    store.acquire(&doubtful).await.unwrap_err();
    proxy.heal();
    let get = || other.get(&doubtful.name);
    let written = tenure_testkit::eventually_async(Duration::from_secs(20), "an answer", get).await;
    let written = written.expect("it was there before");
    assert_eq!(written.holder, doubtful.candidate, "it was taken");

    for _beat in ["before the second rival is told", "after that"] {
        for (place, verdict) in store.renew(&beat).await.iter().enumerate() {
            let expected = match verdict {
                Ok(Renewed::Lost(Some(lease))) if place == heard => lease.token == granted.token,
                Ok(Renewed::Lost(Some(lease))) if place == unheard => lease.token == written.token,
                Ok(Renewed::Extended { .. }) => place != heard && place != unheard,
                Ok(Renewed::Lost(_)) | Err(_) => false,
            };
            assert!(expected, "lease {place}: {verdict:?}");
        }
        let again = take(&*store, &doubtful).await;
        assert_eq!((again.token, again.again), (written.token, true));
    }
    let mut theirs = beat;
    theirs[heard] = renewal(&rival, granted.token);
    theirs[unheard] = renewal(&doubtful, written.token);
    for verdict in store.renew(&theirs).await {
        assert!(matches!(verdict, Ok(Renewed::Extended { .. })), "{verdict:?}");
    }
}

/// What the term before left behind is no abandoned lease: renewals do not look for it, except once a ttl.
#[tokio::test]
async fn renewals_after_a_term_passed_to_a_later_attempt_cost_two_requests_each() {
    let (proxy, store, _direct) = counted().await;
    let ttl = seconds(6);
    let first = request("job", "holder", ttl);
    take(&store, &first).await;
    let second = Acquire {
        attempt: first.attempt.next(),
        ..first
    };
    let token = take(&store, &second).await.token;
    let (began, mut beats, mut failed) = (Instant::now(), 0, 0);
    let before = proxy.counts().requests;
    while began.elapsed() < ttl.duration() * 2 {
        tokio::time::sleep(ttl.duration() / 10).await;
        match store.renew(&[renewal(&second, token)]).await.remove(0) {
            Ok(renewed) => {
                assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
                beats += 1;
            }
            // On a connection that a stall of the machine has ended: none to two, and as many to make it
            // anew.
            Err(_) => failed += 1,
        }
    }
    let cost = proxy.counts().requests - before;
    let looks = began.elapsed().as_secs() / ttl.duration().as_secs() + 1;
    assert!(
        beats > failed && (2 * beats..=2 * beats + looks + 4 * failed).contains(&cost),
        "{cost} requests in {beats} beats, and {failed} that failed"
    );
}

/// Only the first of two requests can move a lease to this process's session; the second finds it there.
#[tokio::test]
async fn lease_that_was_moved_by_a_doubled_renewal_ends_when_nobody_renews_it() {
    let scratch = Scratch::new().await;
    let (store, other) = (scratch.store().await, scratch.store().await);
    let ttl = seconds(6);
    let (kept, moved) = (request("kept", "a", ttl), request("moved", "b", ttl));
    let kept_token = take(&store, &kept).await.token;
    let token = take(&other, &moved).await.token;
    let twice = [renewal(&moved, token), renewal(&moved, token)];
    let began = Instant::now();
    for verdict in store.renew(&twice).await {
        assert!(matches!(verdict, Ok(Renewed::Extended { .. })), "{verdict:?}");
    }
    let beat = [renewal(&kept, kept_token)];
    drop(other);
    while !store.get(&moved.name).await.unwrap().unwrap().remaining.is_zero() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "its neighbour keeps it"
        );
        extend(&store, &beat).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(began.elapsed() >= ttl.duration(), "it was held before");
}

/// Whoever has lost a lease is to stop now, and its neighbours have nothing to do with it.
#[tokio::test]
async fn loss_of_a_lease_is_told_although_the_connection_of_other_requests_is_silent() {
    let (proxy, store, direct) = counted().await;
    let (store, other) = (Arc::new(store), direct.store().await);
    let held = take_many(&store, 3).await;
    let beat = renewals(&held);
    for verdict in store.renew(&beat).await {
        assert!(matches!(verdict, Ok(Renewed::Extended { .. })), "{verdict:?}");
    }
    let lost = 1;
    let (asked, token) = &held[lost];
    other
        .release(&[giving_back(asked, *token)])
        .await
        .remove(0)
        .unwrap();
    let rival = request(asked.name.as_str(), "rival", seconds(TTL_SECS));
    let next = take(&other, &rival).await;
    let mut verdicts = Vec::new();
    // Where the machine stalls, who waits is given up before the verdicts come, or other connections are
    // silent, or none. Verdicts that wait for it are behind it in every round.
    for _round in 0..ROUNDS_MAX {
        let waiting = silence_requests(&proxy, &store).await;
        verdicts = store.renew(&beat).await;
        let is_before = !waiting.is_finished();
        let was_silent = waiting.await.unwrap().is_err();
        for (place, verdict) in verdicts.iter().enumerate() {
            let expected = match verdict {
                Ok(Renewed::Lost(Some(lease))) => place == lost && lease.token == next.token,
                Ok(Renewed::Extended { .. }) => place != lost,
                Ok(Renewed::Lost(None)) => false,
                Err(_unheard) => true,
            };
            assert!(expected, "lease {place}: {verdict:?}");
        }
        if was_silent && is_before && verdicts.iter().all(Result::is_ok) {
            return;
        }
        extend(&store, &beat[..1]).await;
    }
    panic!("not each verdict was told in any of {ROUNDS_MAX} rounds; the last: {verdicts:?}");
}
