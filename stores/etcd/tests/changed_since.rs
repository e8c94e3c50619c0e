//! What a store knows of a lease, and others have changed since: its transaction fails, and what there is
//! then decides.
use crate::clean_up::ROUNDS_MAX;
use crate::common::{
    Scratch, give_back, giving_back, granted, pauses, range, remove, renewal, request, seconds, shared, take,
};
use crate::faults::BOUND;
use crate::sessions::counted;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Certainty, End, Fault as StoreFault, Grant, Lease, LeaseStore, Released, Renewed,
};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Counts, Fault, RequestFault, eventually_async};

/// A store that knows the lease "job" as free, and another beside it.
async fn known_to_be_free() -> (EtcdStore, EtcdStore, Scratch) {
    let scratch = Scratch::new().await;
    let (store, other) = (scratch.store().await, scratch.store().await);
    vacated(&other).await;
    see(&store, true).await;
    (store, other, scratch)
}

/// Somebody's term of the lease is over.
async fn vacated(store: &EtcdStore) -> Grant {
    let first = request("job", "first", seconds(60));
    let grant = take(store, &first).await;
    give_back(store, &first, grant.token).await;
    grant
}

/// Has a store look at the lease, and so know it.
async fn see(store: &EtcdStore, free: bool) -> Lease {
    let lease = store.get(&crate::common::name("job")).await.unwrap().unwrap();
    assert_eq!(lease.released, free);
    lease
}

async fn remove_keys(scratch: &Scratch, from: &str, end: &str) {
    let (from, end) = (scratch.key("job", from), scratch.key("job", end));
    assert!(remove(shared().await, 0, &from, &end) > 0);
}

async fn keys(scratch: &Scratch) -> Vec<Value> {
    range(shared().await, 0, &scratch.key("", ""), &scratch.key("~", ""))
}

/// The lease in an answer that somebody else holds it.
fn held(answer: Acquired) -> Lease {
    match answer {
        Acquired::Held(lease) => lease,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn lease_that_was_free_and_is_taken_since_is_told_as_held() {
    let (store, other, scratch) = known_to_be_free().await;
    let rival = request("job", "rival", seconds(60));
    let theirs = take(&other, &rival).await;
    let before = keys(&scratch).await;
    let lease = held(store.acquire(&request("job", "late", seconds(60))).await.unwrap());
    assert_eq!(
        (lease.token, lease.holder, lease.terms),
        (theirs.token, rival.candidate.clone(), 2)
    );
    assert_eq!(keys(&scratch).await, before, "something was written");
    let renewed = other.renew(&[renewal(&rival, theirs.token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}

/// The term follows those of the others, and says so.
#[tokio::test]
async fn lease_that_was_taken_and_left_since_is_granted_after_that_term() {
    for end in [End::Released, End::Expired] {
        let (store, other, scratch) = known_to_be_free().await;
        let rival = request("job", "rival", seconds(60));
        let theirs = take(&other, &rival).await;
        match end {
            End::Released => give_back(&other, &rival, theirs.token).await,
            // As when its session is over.
            End::Expired => remove_keys(&scratch, "\tholder", "\tholder\0").await,
        }
        let grant = take(&store, &request("job", "late", seconds(60))).await;
        assert_eq!((grant.terms, grant.again), (3, false));
        assert!(grant.token > theirs.token);
        let before = grant.predecessor.expect("a term was before it");
        assert_eq!(
            (before.token, before.candidate, before.end),
            (theirs.token, rival.candidate.id, end)
        );
    }
}

#[tokio::test]
async fn lease_whose_record_is_removed_since_is_granted_as_a_new_one() {
    let (store, other, scratch) = known_to_be_free().await;
    let known = see(&store, true).await;
    remove_keys(&scratch, "", "\u{e}").await;
    let grant = take(&store, &request("job", "late", seconds(60))).await;
    assert_eq!((grant.terms, grant.predecessor), (1, None));
    assert!(grant.token > known.token);
    let seen = other.get(&crate::common::name("job")).await.unwrap().unwrap();
    assert_eq!(seen.token, grant.token);
}

/// The same process, by another of its connections: what it has done there decides, and not what this one
/// knows.
#[tokio::test]
async fn own_attempt_that_was_made_elsewhere_since_decides() {
    let (store, other, _scratch) = known_to_be_free().await;
    let asked = request("job", "same", seconds(60));
    let there = take(&other, &asked).await;
    let again = take(&store, &asked).await;
    assert_eq!((again.token, again.again, again.terms), (there.token, true, 2));
    for ended in [false, true] {
        let (store, other, _scratch) = known_to_be_free().await;
        let asked = request("job", "same", seconds(60));
        let later = Acquire {
            attempt: asked.attempt.next(),
            ..asked.clone()
        };
        let there = take(&other, &later).await;
        if ended {
            give_back(&other, &later, there.token).await;
        }
        assert_eq!(store.acquire(&asked).await, Ok(Acquired::Superseded));
    }
}

/// What it knows is its own term, which a later attempt would follow: it was given back for it, and another
/// has come.
#[tokio::test]
async fn own_term_that_another_has_followed_is_followed_by_none() {
    let scratch = Scratch::new().await;
    let (store, other) = (scratch.store().await, scratch.store().await);
    let first = request("job", "first", seconds(60));
    let ours = take(&store, &first).await;
    give_back(&other, &first, ours.token).await;
    let rival = request("job", "rival", seconds(60));
    let theirs = take(&other, &rival).await;
    let later = Acquire {
        attempt: first.attempt.next(),
        ..first
    };
    let before = keys(&scratch).await;
    let lease = held(store.acquire(&later).await.unwrap());
    assert_eq!((lease.token, lease.holder), (theirs.token, rival.candidate));
    assert_eq!(keys(&scratch).await, before, "something was written");
}

/// Alone and in one request with others: each is told what became of it, and nobody loses anything.
#[tokio::test]
async fn release_of_terms_that_others_have_followed_since_frees_none_of_theirs() {
    const LEFT: usize = 2;
    for batch in [1, 4] {
        let scratch = Scratch::new().await;
        let (store, other) = (scratch.store().await, scratch.store().await);
        let mut ours = Vec::new();
        for number in 0..4 {
            let asked = request(&format!("job-{number}"), "ours", seconds(60));
            let token = take(&store, &asked).await.token;
            ours.push((asked, token));
        }
        let mut theirs = Vec::new();
        for (asked, token) in &ours[..LEFT] {
            give_back(&other, asked, *token).await;
            let rival = request(asked.name.as_str(), "rival", seconds(60));
            let token = take(&other, &rival).await.token;
            theirs.push((rival, token));
        }
        let (from, end) = (scratch.key("job-2", ""), scratch.key("job-2", "\u{e}"));
        assert!(remove(shared().await, 0, &from, &end) > 0);
        let releases: Vec<_> = ours
            .iter()
            .map(|(asked, token)| giving_back(asked, *token))
            .collect();
        let mut verdicts = Vec::new();
        for part in releases.chunks(batch) {
            verdicts.extend(store.release(part).await);
        }
        for (verdict, (_, token)) in verdicts.iter().zip(&theirs) {
            let Ok(Released::NotYours(Some(lease))) = verdict else {
                panic!("{verdict:?}");
            };
            assert_eq!((lease.token, lease.released), (*token, false));
        }
        assert_eq!(
            verdicts[LEFT..],
            [Ok(Released::NotYours(None)), Ok(Released::Vacated)]
        );
        let beat: Vec<_> = theirs
            .iter()
            .map(|(asked, token)| renewal(asked, *token))
            .collect();
        for renewed in other.renew(&beat).await {
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        }
    }
}

/// Whoever looks after a transaction that failed is told what there is by then; from there on each
/// transaction looks itself.
#[tokio::test]
async fn lease_that_changes_again_before_it_is_looked_at_is_told_as_it_is() {
    let (proxy, store, direct) = counted().await;
    let (store, other) = (Arc::new(store), direct.store().await);
    for pause in pauses() {
        let before_it = vacated(&other).await;
        see(&store, true).await;
        let [rival, next] = ["rival", "next"].map(|label| request("job", label, seconds(60)));
        let theirs = take(&other, &rival).await;
        // A session that is new: the transaction goes alone.
        take(
            &*store,
            &request(&format!("warm-{}", before_it.token), "warm", seconds(60)),
        )
        .await;
        let sent = proxy.counts().requests;
        proxy.set(Fault::Delay {
            to_server: Duration::ZERO,
            to_client: pause,
        });
        let late = request("job", "late", seconds(60));
        let acquiring = tokio::spawn({
            let (store, late) = (Arc::clone(&store), late.clone());
            async move { store.acquire(&late).await }
        });
        let arrived = async |count: u64| {
            let arrived = async || (proxy.counts().requests >= sent + count).then_some(());
            eventually_async(BOUND, "a request", arrived).await;
        };
        // The transaction has failed, and its answer is on the way.
        arrived(1).await;
        give_back(&other, &rival, theirs.token).await;
        let free_before_the_look = proxy.counts().requests == sent + 1;
        // The look finds that it is free, and what it says is on the way.
        arrived(2).await;
        let last = other.acquire(&next).await.unwrap();
        let taken_before_the_next = proxy.counts().requests == sent + 2;
        let answer = acquiring.await.unwrap();
        proxy.heal();
        let Acquired::Granted(last) = last else {
            // The late one came first, as it might.
            give_back(&other, &late, granted(answer.unwrap()).token).await;
            continue;
        };
        let cost = proxy.counts().requests - sent;
        // Three where the server has looked later than it was asked to: it has found the next one, and
        // nothing is to be tried.
        if free_before_the_look && taken_before_the_next && cost != 3 {
            let lease = held(answer.unwrap());
            assert_eq!((lease.token, lease.holder), (last.token, next.candidate));
            // Two transactions and one look, and what remains of the other's term.
            assert_eq!(cost, 4);
            return;
        }
        give_back(&other, &next, last.token).await;
    }
    panic!("the machine stalled each time");
}

/// Nothing was changed, and that alone is known.
#[tokio::test]
async fn look_that_fails_after_a_transaction_that_failed_is_told_as_nothing_done() {
    let (proxy, store, direct) = counted().await;
    let other = direct.store().await;
    for _round in 0..ROUNDS_MAX {
        let first = vacated(&other).await;
        let ours = request(&format!("ours-{}", first.token), "ours", seconds(60));
        let our_token = take(&store, &ours).await.token;
        give_back(&other, &ours, our_token).await;
        let rivals = ["job", ours.name.as_str()].map(|name| request(name, "rival", seconds(60)));
        see(&store, true).await;
        let mut theirs = Vec::new();
        for rival in &rivals {
            theirs.push(take(&other, rival).await.token);
        }
        let before = keys(&direct).await;
        let failing = || {
            // The first goes through, and that twice, which changes nothing.
            proxy.next_requests(1, RequestFault::Duplicate);
            proxy.next_requests(1, RequestFault::CutBefore);
            proxy.counts()
        };
        let met = |sent: Counts| {
            let now = proxy.counts();
            proxy.heal();
            (now.requests - sent.requests, now.cut_before - sent.cut_before)
        };
        let sent = failing();
        let acquired = store.acquire(&request("job", "late", seconds(60))).await;
        let met_first = met(sent);
        // Connecting again asks something, too.
        see(&store, false).await;
        let sent = failing();
        let released = store.release(&[giving_back(&ours, our_token)]).await.remove(0);
        let met_then = met(sent);
        assert_eq!(keys(&direct).await, before, "something was written");
        if [met_first, met_then] == [(1, 1); 2] {
            for error in [acquired.unwrap_err(), released.unwrap_err()] {
                assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
                assert_eq!(error.fault, StoreFault::Unreachable, "{error}");
            }
            return;
        }
        for (rival, token) in rivals.iter().zip(theirs) {
            give_back(&other, rival, token).await;
        }
    }
    panic!("the machine stalled each time");
}
