//! Leases that are put on another session: by a renewal through another store, or with another ttl.
use crate::common::{giving_back, renewal, request, seconds, take};
use crate::sessions::counted;
use std::time::{Duration, Instant};
use tenure_core::{LeaseStore, Renewed};
use tenure_testkit::{Fault, RequestFault, eventually_async};

/// For a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much of its time the session is over that a lease is moved to.
const AGE: Duration = Duration::from_secs(4);

/// The requests of such a renewal: the reading, the extension and its proof, the move.
const REQUESTS: u64 = 4;

/// How often a machine may be too slow to break one of them off.
const ROUNDS_MAX: u32 = 5;

/// Its holder trusts what it was granted before, and may not hear of the move.
#[tokio::test]
async fn lease_that_is_moved_ends_no_sooner_wherever_its_renewal_breaks_off() {
    let mut cuts = tokio::task::JoinSet::new();
    for heard in 0..REQUESTS {
        cuts.spawn(async move {
            for _round in 0..ROUNDS_MAX {
                if move_and_cut_after(heard).await {
                    return;
                }
            }
            panic!("no renewal broke off after {heard} requests, in {ROUNDS_MAX} rounds");
        });
    }
    cuts.join_all().await;
}

/// Moves a lease to a session that is not new any more; every connection breaks once so many requests were heard, and the next
/// was applied. Whether the renewal broke off.
async fn move_and_cut_after(heard: u64) -> bool {
    let (proxy, store, direct) = counted().await;
    let ttl = seconds(20);
    let first = request("first", "holder", ttl);
    let token = take(&store, &first).await.token;
    store
        .release(&[giving_back(&first, token)])
        .await
        .remove(0)
        .unwrap();
    tokio::time::sleep(AGE).await;
    let (other, asked) = (direct.store().await, request("job", "holder", ttl));
    let asked_at = Instant::now();
    let token = take(&other, &asked).await.token;

    // So that requests come one after another, and the fault finds the one that is meant.
    proxy.set(Fault::Delay {
        to_server: Duration::from_millis(100),
        to_client: Duration::ZERO,
    });
    let before = proxy.counts().requests;
    let cutting = async {
        let come = async || (proxy.counts().requests >= before + heard).then_some(());
        eventually_async(PATIENCE, "a request", come).await;
        proxy.next_requests(1_000, RequestFault::CutAfter);
    };
    let beat = [renewal(&asked, token)];
    let (mut renewed, ()) = tokio::join!(store.renew(&beat), cutting);
    let renewed = renewed.remove(0);
    let lease = other.get(&asked.name).await.unwrap().unwrap();
    assert_eq!(lease.token, token);
    assert!(
        lease.remaining + asked_at.elapsed() >= ttl.duration(),
        "after {heard} requests: {:?} remain, {:?} after it was granted for {ttl}: {renewed:?}",
        lease.remaining,
        asked_at.elapsed()
    );
    proxy.heal();
    let again = eventually_async(PATIENCE, "a renewal", async || store.renew(&beat).await.remove(0)).await;
    assert!(matches!(again, Renewed::Extended { .. }), "{again:?}");
    renewed.is_err()
}
