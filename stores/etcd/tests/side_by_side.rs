//! What is asked or done of many at once: side by side, and going on where it was.
use crate::common::{Scratch, request, seconds, shared, take};
use std::time::{Duration, Instant};
use tenure_core::{LeasePage, LeaseStore, Listed, Page};
use tenure_testkit::{Fault, FaultProxy};

async fn page(store: &impl LeaseStore) -> LeasePage {
    let page = Page {
        prefix: String::new(),
        after: None,
        limit: 1_000,
    };
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
