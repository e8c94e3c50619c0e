//! Leases that are put on another session: by a renewal through another store, or with another ttl.
use crate::common::{give_back, renewal, request, seconds, take};
use crate::sessions::{TTL_SECS, counted, renewals, take_many};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Ask, Asked, LeaseStore, Renewed, Wish};
use tenure_testkit::{Fault, RequestFault, eventually_async, in_one_of};

/// For a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much of its time the session is over that a lease is moved to.
const AGE: Duration = Duration::from_secs(4);

/// The requests of such a renewal: the reading, the extension and its proof, the move. In a batch of many,
/// before the move: the extension and its proof, the list, the reading.
const REQUESTS: u64 = 4;

/// With one more they are a batch whose keys are not read one by one.
const MANY: usize = 100;

/// How often a machine may be too slow to break one of them off.
const ROUNDS_MAX: u32 = 5;

/// Its holder trusts what it was granted before, and may not hear of the move.
#[tokio::test]
async fn lease_that_is_moved_ends_no_sooner_wherever_its_renewal_breaks_off() {
    let mut cuts = tokio::task::JoinSet::new();
    for heard in 0..REQUESTS {
        cuts.spawn(async move {
            in_one_of(
                ROUNDS_MAX,
                &format!("no renewal broke off after {heard} requests"),
                || move_and_cut_after(heard),
            )
            .await;
        });
    }
    cuts.join_all().await;
}

/// Moves a lease to a session that is not new any more; every connection breaks once so many requests were
/// heard, and the next was applied. Whether the renewal broke off.
async fn move_and_cut_after(heard: u64) -> bool {
    let (proxy, store, direct) = counted().await;
    let ttl = seconds(20);
    let first = request("first", "holder", ttl);
    let token = take(&store, &first).await.token;
    give_back(&store, &first, token).await;
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

/// A batch of many knows wishes by what is on its session.
#[tokio::test]
async fn wish_that_comes_while_its_lease_is_moved_reaches_the_holder() {
    let (proxy, store, direct) = counted().await;
    let (store, other) = (Arc::new(store), direct.store().await);
    let mut held = take_many(&store, MANY).await;
    // So that the connection of renewals is there before each of its messages waits.
    store.renew(&renewals(&held)).await.remove(0).unwrap();
    let moved = request("moved", "holder", seconds(TTL_SECS));
    let token = take(&other, &moved).await.token;
    held.push((moved.clone(), token));
    let beat = renewals(&held);

    // So that requests come one after another, and the wish between two of them: when the lease was read, and
    // before it is moved.
    proxy.set(Fault::Delay {
        to_server: Duration::from_millis(200),
        to_client: Duration::ZERO,
    });
    let before = proxy.counts().requests;
    let asking = async {
        let read = async || (proxy.counts().requests >= before + REQUESTS).then_some(());
        eventually_async(PATIENCE, "the reading", read).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let name = moved.name.clone();
        other.ask(&Ask { name, token }).await
    };
    let (_first, asked) = tokio::join!(store.renew(&beat), asking);
    assert_eq!(asked, Ok(Asked::Noted));
    proxy.heal();
    for (verdict, (asked, _)) in store.renew(&beat).await.iter().zip(&held) {
        let wanted = match asked.name == moved.name {
            true => Wish::StepDown,
            false => Wish::Nothing,
        };
        assert!(
            matches!(verdict, Ok(Renewed::Extended { wish, .. }) if *wish == wanted),
            "{}: {verdict:?}",
            asked.name
        );
    }
}
