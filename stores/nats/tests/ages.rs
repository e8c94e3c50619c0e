//! How old leases are, for who has not seen them before.

use crate::common::{Scratch, giving_back, renewal, request, seconds, take};
use std::time::{Duration, Instant};
use tenure_core::{Lease, LeaseName, LeaseStore, Listed, Page};

/// How long a lease is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(2);

/// What it must have aged by then: a reading of the leader's clock that was long on its way makes ages
/// shorter.
const AGED: Duration = Duration::from_secs(1);

/// What whole milliseconds may add to an age.
const GRAIN: Duration = Duration::from_millis(20);

/// What a process sees that looks once and has never looked before, by both ways of looking.
async fn looks(scratch: &Scratch, name: &LeaseName) -> [Lease; 2] {
    let got = scratch.store().await.get(name).await.unwrap().expect("a lease");
    let page = Page::first(name.to_string(), 10);
    let mut listed = scratch.store().await.list(&page).await.unwrap().leases;
    match listed.remove(0) {
        Listed::Lease(lease) => [got, lease],
        Listed::Unreadable { error, .. } => panic!("{error}"),
    }
}

/// No clock of a client's says so: the time of the last write is the servers', and the token is their clock
/// at the first.
#[tokio::test]
async fn who_looks_for_the_first_time_is_told_ages_by_the_servers_clock() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(60));
    let took = Instant::now();
    let token = take(&store, &asked).await.token;
    tokio::time::sleep(LEFT_ALONE).await;
    for lease in looks(&scratch, &asked.name).await {
        assert!(lease.held_for >= AGED, "{lease:?}");
        assert!(lease.held_for <= took.elapsed() + GRAIN, "{lease:?}");
        assert_eq!(lease.renewed_ago, lease.held_for, "it was not renewed");
        assert!(
            lease.remaining >= seconds(60).duration(),
            "no age shortens the wait: {lease:?}"
        );
    }
    let renewed = Instant::now();
    store.renew(&[renewal(&asked, token)]).await.remove(0).unwrap();
    for lease in looks(&scratch, &asked.name).await {
        assert!(lease.held_for >= AGED, "{lease:?}");
        assert!(lease.renewed_ago <= renewed.elapsed() + GRAIN, "{lease:?}");
    }
    store
        .release(&[giving_back(&asked, token)])
        .await
        .remove(0)
        .unwrap();
    tokio::time::sleep(LEFT_ALONE).await;
    for lease in looks(&scratch, &asked.name).await {
        assert!(lease.renewed_ago >= AGED, "{lease:?}");
        assert!(lease.held_for >= LEFT_ALONE + AGED, "{lease:?}");
    }
}
