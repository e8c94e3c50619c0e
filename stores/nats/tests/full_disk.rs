//! A server whose disk is full: it takes nothing and does not say so, and nothing is lost.

use crate::common::{Scratch, granted, renewal, request, seconds, take};
use std::time::{Duration, Instant};
use tenure_core::{Acquired, Certainty, Fault, LeaseStore, Renewed};
use tenure_testkit::{NatsOptions, NatsServer, eventually_async};

/// The store's own bound on a request is a few seconds; the rest is for a loaded machine.
const BOUND: Duration = Duration::from_secs(30);

/// Leases that what is left of a page has room for, at most.
const LEASES_MAX: u32 = 500;

/// Of the disk, in bytes: far more than the server needs to begin.
const DISK_BYTES: u64 = 16 * 1024 * 1024;

/// A server that could not write answers nothing, and writes to that bucket no more until it is started
/// again.
#[tokio::test]
async fn nats_whose_disk_is_full_grants_nothing_loses_nothing_and_goes_on_after_a_restart() {
    let options = NatsOptions::durable().on_a_disk_of(DISK_BYTES);
    let mut server = NatsServer::start(options).await.expect("a server");
    let store = Scratch::on(&server.url()).store().await;
    let held = request("held", "holder", seconds(300));
    let token = take(&store, &held).await.token;
    let renewals = [renewal(&held, token)];
    server.fill_disk().expect("a full disk");
    let mut last = 0;
    let refused = loop {
        last += 1;
        assert!(last < LEASES_MAX, "{LEASES_MAX} leases were taken without room");
        let asked = request(&format!("job-{last}"), "a", seconds(300));
        let began = Instant::now();
        match store.acquire(&asked).await {
            Ok(answer) => drop(granted(answer)),
            Err(error) => {
                assert!(began.elapsed() < BOUND, "it took {:?}", began.elapsed());
                break error;
            }
        }
    };
    // A server of 2.15 does not answer any more; one of 2.12 says why.
    let is_told = refused.fault == Fault::Full && refused.message.contains("disk is full");
    assert!(is_told || refused.fault == Fault::TimedOut, "{refused}");
    assert_eq!(refused.certainty, Certainty::Unknown, "{refused}");
    // A renewal is a write, too: the term ends with its lease.
    let renewed = store.renew(&renewals).await.remove(0);
    assert_eq!(
        renewed.as_ref().expect_err("no room").certainty,
        Certainty::Unknown
    );

    server.free_disk().expect("room");
    server.restart().await.expect("a server");
    let lease = eventually_async(BOUND, "an answer", || store.get(&held.name)).await;
    let lease = lease.expect("the record");
    assert_eq!((lease.token, lease.released), (token, false), "{lease:?}");
    let renewed = store.renew(&renewals).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let other = store.acquire(&request("held", "other", seconds(300))).await;
    assert!(
        matches!(&other, Ok(Acquired::Held(lease)) if lease.token == token),
        "{other:?}"
    );
    // All that was granted is there, and what was not is nobody's.
    for number in 1..last {
        let name = crate::common::name(&format!("job-{number}"));
        assert!(
            store.get(&name).await.expect("a read").is_some(),
            "{name} is lost"
        );
    }
    let free = take(&store, &request(&format!("job-{last}"), "b", seconds(300))).await;
    assert_eq!((free.terms, free.predecessor), (1, None));
}
