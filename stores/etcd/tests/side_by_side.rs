//! What is asked or done of many at once: side by side, and going on where it was.
use crate::common::{Scratch, giving_back, request, seconds, shared, take};
use crate::sessions::{counted, renewals, take_many};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{LeasePage, LeaseStore, Listed, Occupancy, Page, Release, Renewed};
use tenure_testkit::{Fault, FaultProxy};
use tokio::task::JoinSet;

async fn page(store: &impl LeaseStore) -> LeasePage {
    let page = Page::first("", 1_000);
    store.list(&page).await.unwrap()
}

/// As the places of a queue are in which as many processes wait: each is on a session of its own.
#[tokio::test]
async fn page_of_many_sessions_takes_no_round_trip_for_each() {
    const SESSIONS: u32 = 200;
    const ROUND_TRIP: Duration = Duration::from_millis(50);
    let direct = Scratch::new().await;
    let store = direct.store().await;
    for number in 0..SESSIONS {
        let asked = request(
            &format!("place-{number:03}"),
            "holder",
            seconds(900 + u64::from(number)),
        );
        take(&store, &asked).await;
    }
    // What was sent at once arrives at once.
    let proxy = FaultProxy::bytes(shared().await.address(0)).unwrap();
    let far = Scratch {
        url: format!("etcd://{}", proxy.address()),
        ..direct
    };
    let far = far.store().await;
    page(&far).await;
    proxy.set(Fault::Delay {
        to_server: ROUND_TRIP,
        to_client: Duration::ZERO,
    });
    let began = Instant::now();
    let leases = page(&far).await.leases;
    let took = began.elapsed();
    assert!(took < SESSIONS * ROUND_TRIP / 2, "{took:?}");
    assert_eq!(leases.len(), 200);
    for (number, listed) in (0..).zip(leases) {
        let Listed::Lease(lease) = listed else {
            panic!("{listed:?}")
        };
        let (least, most) = (
            Duration::from_secs(600 + number),
            Duration::from_secs(900 + number),
        );
        assert!((least..=most).contains(&lease.remaining), "{lease:?}");
    }
}

/// As an engine does whose time for them is over: it drops the request, and sends it again.
#[tokio::test]
async fn releases_that_are_given_up_again_and_again_go_on_where_they_were() {
    const LEASES: usize = 6_000;
    // Fewer than there are parts of a hundred.
    const REQUESTS: u64 = 40;
    const ROUNDS: usize = 40;
    let (proxy, store, direct) = counted().await;
    let (store, other) = (Arc::new(store), direct.store().await);
    let held = take_many(&store, LEASES).await;
    let releases: Vec<Release> = held
        .iter()
        .map(|(asked, token)| giving_back(asked, *token))
        .collect();
    for _ in 0..ROUNDS {
        let before = proxy.counts().requests;
        let enough = async {
            while proxy.counts().requests < before + REQUESTS {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            biased;
            () = enough => {}
            verdicts = store.release(&releases) => {
                assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
                break;
            }
        }
    }
    let mut vacant = 0;
    let mut after = None;
    loop {
        let page = Page {
            after,
            ..Page::first("", 1_000)
        };
        let page = other.list(&page).await.unwrap();
        let is_vacant = |listed: &&Listed| matches!(listed, Listed::Lease(lease) if lease.occupancy() == Occupancy::Vacant);
        vacant += page.leases.iter().filter(is_vacant).count();
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(vacant, LEASES);
}

/// As those of a hundred thousand locks are: each names every key of the session.
#[tokio::test]
async fn batches_of_one_beat_share_the_list_of_their_session() {
    const BATCHES: usize = 8;
    const ROUNDS: usize = 20;
    let (proxy, store, _direct) = counted().await;
    let store = Arc::new(store);
    let held = take_many(&store, BATCHES * 101).await;
    let beat = renewals(&held);
    store.renew(&beat[..1]).await.remove(0).unwrap();
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        // So that they come side by side, on a busy machine as well.
        proxy.set(Fault::Hold);
        let before = proxy.counts().requests;
        let mut renewing = JoinSet::new();
        for batch in beat.chunks(101) {
            let (store, batch) = (Arc::clone(&store), batch.to_vec());
            renewing.spawn(async move { store.renew(&batch).await });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        proxy.heal();
        for verdict in renewing.join_all().await.into_iter().flatten() {
            assert!(matches!(verdict, Ok(Renewed::Extended { .. })), "{verdict:?}");
        }
        costs.push(proxy.counts().requests - before);
    }
    // An extension, a reading, and the list, which some of them share.
    let fewest = costs.iter().min().unwrap();
    assert!(*fewest <= 2 * BATCHES as u64 + 3, "{costs:?}");
}
