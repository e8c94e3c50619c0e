//! An etcd that was put back to what it was, without its revisions being bumped: what Tenure says, and what
//! holds all the same.
use crate::common::{Scratch, giving_back, put, renewal, request, seconds, shared, take};
use crate::sessions::{TTL_SECS, renewals, take_many};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{
    Acquire, Acquired, Change, Claimed, Fence, FenceError, Interest, LeaseStore, Leases, Occupancy, Released,
    Renewed, ResourceName, Scope, Term, WatchEvent,
};
use tenure_etcd::EtcdFence;
use tenure_testkit::{Etcd, EtcdOptions, FaultProxy, eventually_async};

const BOUND: Duration = Duration::from_secs(20);

/// The assumption of E1 does not hold here, and tokens are given twice: whoever led is told, and a fence
/// elsewhere, whose mark was not put back, admits no token that it has seen surpassed.
#[tokio::test]
async fn tokens_of_an_etcd_that_was_put_back_are_refused_by_the_fence_until_they_are_new() {
    let mut etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let scratch = Scratch::on(&etcd.url());
    let store = scratch.store().await;
    let name = |token| Term::new(crate::common::name("job"), token);
    let before = request("job", "before", seconds(60));
    let oldest = take(&store, &before).await;
    let released = store
        .release(&[giving_back(&before, oldest.token)])
        .await
        .remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    etcd.kill(0);
    let backup = etcd.backup(0).unwrap();
    etcd.restart(0).await.unwrap();

    // After the backup was made, revisions go on, and a term claims.
    for number in 0..10 {
        put(&etcd, 0, "elsewhere", &number.to_string());
    }
    let held = request("job", "held", seconds(60));
    let lost = eventually_async(BOUND, "a term", || store.acquire(&held)).await;
    let lost = crate::common::granted(lost);
    let fence = EtcdFence::connect(&Scratch::on(&shared().await.url()).store_url(), Leases::Elsewhere)
        .await
        .unwrap();
    let ledger = ResourceName::new("ledger").unwrap();
    let claimed = fence.claim(&ledger, &name(lost.token)).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from: None }));

    etcd.kill(0);
    etcd.put_back(0, &backup).unwrap();
    etcd.restart(0).await.unwrap();
    // Whoever led is told, by a store that was connected all the time.
    let renewals = [renewal(&held, lost.token)];
    let renewed = eventually_async(BOUND, "a verdict", || async {
        store.renew(&renewals).await.remove(0)
    })
    .await;
    assert!(matches!(renewed, Renewed::Lost(_)), "{renewed:?}");
    // The next term has a token below that of the lost one: so nothing but the fence tells them apart.
    let next = request("job", "next", seconds(60));
    let repeated = take(&scratch.store().await, &next).await;
    assert!(
        repeated.token > oldest.token && repeated.token < lost.token,
        "{repeated:?} after {lost:?}"
    );
    let refused = fence.claim(&ledger, &name(repeated.token)).await;
    let stale = FenceError::Stale {
        resource: ledger.clone(),
        token: repeated.token,
        mark: lost.token,
    };
    assert_eq!(refused, Err(stale));
    // Nobody gets in before revisions are past the mark, which takes as long as it takes.
    let released = store
        .release(&[giving_back(&next, repeated.token)])
        .await
        .remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    for number in 0..20 {
        put(&etcd, 0, "elsewhere", &number.to_string());
    }
    let new = take(&store, &request("job", "new", seconds(60))).await;
    assert!(new.token > lost.token, "{new:?}");
    let claimed = fence.claim(&ledger, &name(new.token)).await;
    assert_eq!(
        claimed,
        Ok(Claimed::Raised {
            from: Some(lost.token)
        })
    );
}

/// Whoever gives back what he held before knows its revision, and the next holder's record has the very same.
#[tokio::test]
async fn release_of_a_term_from_before_frees_none_that_was_begun_since() {
    let mut etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let scratch = Scratch::on(&etcd.url());
    let store = scratch.store().await;
    // So that the session outlives it.
    take(&store, &request("warm", "before", seconds(60))).await;
    etcd.kill(0);
    let backup = etcd.backup(0).unwrap();
    etcd.restart(0).await.unwrap();
    let ours = ["job", "lock", "gate"].map(|name| request(name, "before", seconds(60)));
    let held = eventually_async(BOUND, "a term", || store.acquire(&ours[0])).await;
    let tokens = [
        crate::common::granted(held).token,
        take(&store, &ours[1]).await.token,
        take(&store, &ours[2]).await.token,
    ];
    let released = store.release(&[giving_back(&ours[1], tokens[1])]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));

    etcd.kill(0);
    etcd.put_back(0, &backup).unwrap();
    etcd.restart(0).await.unwrap();
    let other = scratch.store().await;
    for (ours, token) in ours.iter().zip(tokens) {
        let theirs = request(ours.name.as_str(), "next", seconds(60));
        assert_eq!(
            take(&other, &theirs).await.token,
            token,
            "so that this proves something"
        );
    }
    // What fails may be forgotten: so it connects again before.
    let elsewhere = crate::common::name("elsewhere");
    eventually_async(BOUND, "an answer", || store.get(&elsewhere)).await;
    // The first is looked at before it is given back, and the last is not.
    let again = Acquire {
        attempt: ours[0].attempt.next(),
        ..ours[0].clone()
    };
    let acquired = eventually_async(BOUND, "an answer", || store.acquire(&again)).await;
    assert!(matches!(acquired, Acquired::Held(_)), "{acquired:?}");
    for (ours, token) in ours.iter().zip(tokens) {
        let giving = async || store.release(&[giving_back(ours, token)]).await.remove(0);
        let released = eventually_async(BOUND, "a release", giving).await;
        assert!(matches!(released, Released::NotYours(Some(_))), "{released:?}");
        assert_eq!(
            other.get(&ours.name).await.unwrap().unwrap().occupancy(),
            Occupancy::Held
        );
    }
}

/// In a batch that is renewed by what is on the session: there a key of the same lease is there again, of an
/// earlier term.
#[tokio::test]
async fn term_that_began_after_the_backup_is_told_as_lost_in_a_batch_of_many() {
    let mut etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let store = Arc::new(Scratch::on(&etcd.url()).store().await);
    let mut held = take_many(&store, 150).await;
    etcd.kill(0);
    let backup = etcd.backup(0).unwrap();
    etcd.restart(0).await.unwrap();
    let before = held[7].clone();
    let releasing = async || store.release(&[giving_back(&before.0, before.1)]).await.remove(0);
    let released = eventually_async(BOUND, "a release", releasing).await;
    assert_eq!(released, Released::Vacated);
    let later = request(before.0.name.as_str(), "later", seconds(TTL_SECS));
    held[7] = (later.clone(), take(&*store, &later).await.token);

    etcd.kill(0);
    etcd.put_back(0, &backup).unwrap();
    etcd.restart(0).await.unwrap();
    let beat = renewals(&held);
    let renewing = async || {
        store
            .renew(&beat)
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
    };
    let verdicts = eventually_async(BOUND, "verdicts", renewing).await;
    for (place, verdict) in verdicts.iter().enumerate() {
        let lost = matches!(verdict, Renewed::Lost(_));
        assert_eq!(lost, place == 7, "lease {place}: {verdict:?}");
    }
}

/// Whoever gave it back does not know of it any more, and what is there again is on a session that goes on.
#[tokio::test]
async fn lease_that_was_given_back_after_the_backup_ends_although_its_neighbours_are_renewed() {
    let mut etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    let scratch = Scratch::on(&etcd.url());
    let store = scratch.store().await;
    // Longer than a server needs to start again.
    let ttl = seconds(20);
    let (kept, left) = (request("kept", "a", ttl), request("left", "b", ttl));
    let kept_token = take(&store, &kept).await.token;
    let left_token = take(&store, &left).await.token;
    etcd.kill(0);
    let backup = etcd.backup(0).unwrap();
    etcd.restart(0).await.unwrap();
    let releasing = async || store.release(&[giving_back(&left, left_token)]).await.remove(0);
    let released = eventually_async(BOUND, "a release", releasing).await;
    assert_eq!(released, Released::Vacated);

    etcd.kill(0);
    etcd.put_back(0, &backup).unwrap();
    etcd.restart(0).await.unwrap();
    let beat = [renewal(&kept, kept_token)];
    let (other, rival) = (scratch.store().await, request("left", "rival", ttl));
    let began = Instant::now();
    let taken = loop {
        let renewing = async || store.renew(&beat).await.remove(0);
        let renewed = eventually_async(BOUND, "a renewal", renewing).await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
        if let Acquired::Granted(grant) = other.acquire(&rival).await.unwrap() {
            break grant;
        }
        assert!(began.elapsed() < 3 * ttl.duration(), "its neighbours keep it");
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    assert!(taken.token > left_token, "{taken:?}");
}

/// A stream of events from a revision that is not there yet says nothing.
#[tokio::test]
async fn watch_that_goes_on_where_revisions_have_gone_back_says_that_something_may_be_missed() {
    let (mut etcd, mut earlier) = (
        Etcd::start(EtcdOptions::default()).await.unwrap(),
        Etcd::start(EtcdOptions::default()).await.unwrap(),
    );
    // Another server that has what this one has by now stands for this one, put back to that: it is of the
    // same cluster.
    etcd.kill(0);
    earlier.kill(0);
    earlier.put_back(0, &etcd.backup(0).unwrap()).unwrap();
    etcd.restart(0).await.unwrap();
    earlier.restart(0).await.unwrap();
    let proxy = FaultProxy::http2(etcd.address(0)).unwrap();
    let through = Scratch::on(&format!("etcd://{}", proxy.address()));
    let store = through.store().await;
    for number in 0..10 {
        put(&etcd, 0, "elsewhere", &number.to_string());
    }
    let name = crate::common::name("job");
    let mut watch = store
        .watch(&Scope::Name(name.clone()), Interest::Everything)
        .await
        .unwrap();
    proxy.lead_to(earlier.address(0));
    proxy.cut_connections();
    let mut next = async || tokio::time::timeout(BOUND, watch.next()).await.expect("in time");
    for when in ["that it went back", "what came before it was in place again"] {
        assert_eq!(next().await, Ok(WatchEvent::Gap), "{when}");
    }
    let direct = Scratch {
        url: earlier.url(),
        ..through
    };
    let grant = take(&direct.store().await, &request("job", "a", seconds(60))).await;
    let taken = WatchEvent::Changed {
        name,
        change: Change::Taken,
        token: Some(grant.token),
    };
    assert_eq!(next().await, Ok(taken));
}
