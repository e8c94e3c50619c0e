//! Numbers that come again: a server that has lost what it confirmed, or a bucket that is made anew, gives
//! other writes the numbers of those.

use crate::common::{Scratch, giving_back, granted, key, name, renewal, request, seconds, shared, take};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::{
    Fault, Fence, FenceError, FencingToken, LeaseStore, Leases, Released, Renewed, ResourceName, Term,
    Verdict,
};
use tenure_nats::{NatsFence, NatsStore};
use tenure_testkit::{FaultProxy, NatsOptions, NatsServer, eventually_async};

/// For connecting again on a loaded machine.
const BOUND: Duration = Duration::from_secs(60);

fn term(token: u64) -> Term {
    Term::new(name("job"), FencingToken::new(token).expect("a token"))
}

async fn fence(scratch: &Scratch) -> NatsFence {
    let fence = NatsFence::connect(&scratch.store_url(), Leases::Elsewhere).await;
    fence.expect("the fence connects")
}

async fn number(scratch: &Scratch, key: &str) -> u64 {
    let last = scratch.beneath().await.last(key).await;
    last.expect("it is there").0
}

/// A server that has the bucket, and keeps a copy of that.
async fn server_with_a_bucket() -> (NatsServer, Scratch) {
    let mut server = NatsServer::start(NatsOptions::durable()).await.expect("a server");
    let scratch = Scratch::on(&server.url());
    drop(scratch.store().await);
    server.kill();
    server.keep_data().expect("a copy");
    server.restart().await.expect("restarted");
    (server, scratch)
}

async fn lose_everything_since(server: &mut NatsServer) {
    server.kill();
    server.put_back_data().expect("put back");
    server.restart().await.expect("restarted");
}

async fn make_again(scratch: &Scratch) {
    let api = format!("STREAM.DELETE.{}", scratch.stream());
    let removed = scratch.beneath().await.call(&api, Value::Null).await;
    assert_eq!(removed["success"], true, "{removed}");
    drop(scratch.store().await);
}

/// The old term's put is refused, and so is its deletion.
async fn old_term_is_refused(old: &NatsFence, ledger: &ResourceName) {
    for _try in 0..2 {
        let put = eventually_async(BOUND, "an answer that is sure", || async {
            match old.put(ledger, &term(10), "balance", "old").await {
                // The connection ended before its end was noticed.
                Err(FenceError::Store(error)) if error.fault == Fault::Unreachable => None,
                answer => Some(answer),
            }
        })
        .await;
        assert!(matches!(put, Err(FenceError::Stale { .. })), "{put:?}");
    }
}

#[tokio::test]
async fn write_of_a_term_whose_claim_was_lost_is_refused_although_a_later_mark_has_its_number() {
    let (mut server, scratch) = server_with_a_bucket().await;
    let ledger = ResourceName::new("ledger").expect("a name");
    let (old, new) = (fence(&scratch).await, fence(&scratch).await);
    old.claim(&ledger, &term(10)).await.expect("claimed");
    let before = number(&scratch, "tenure-fence.ledger").await;
    lose_everything_since(&mut server).await;
    eventually_async(BOUND, "a claim", || async { new.claim(&ledger, &term(11)).await }).await;
    assert_eq!(
        number(&scratch, "tenure-fence.ledger").await,
        before,
        "it came again"
    );
    old_term_is_refused(&old, &ledger).await;
    new.put(&ledger, &term(11), "balance", "new")
        .await
        .expect("admitted");
}

#[tokio::test]
async fn write_of_a_term_is_refused_after_its_bucket_was_made_again_and_claimed_by_a_later_one() {
    let scratch = Scratch::on(&shared().await.url());
    let ledger = ResourceName::new("ledger").expect("a name");
    let old = fence(&scratch).await;
    old.claim(&ledger, &term(10)).await.expect("claimed");
    make_again(&scratch).await;
    let new = fence(&scratch).await;
    new.claim(&ledger, &term(11)).await.expect("claimed");
    old_term_is_refused(&old, &ledger).await;
}

/// Another's term is neither extended nor given back.
async fn term_is_left_to_its_holder(
    first: &NatsStore,
    asked: &tenure_core::Acquire,
    mine: FencingToken,
    theirs: FencingToken,
) {
    let lost = eventually_async(BOUND, "an answer that is sure", || async {
        first.renew(&[renewal(asked, mine)]).await.remove(0)
    })
    .await;
    assert!(
        matches!(&lost, Renewed::Lost(Some(now)) if now.token == theirs),
        "{lost:?}"
    );
    let released = eventually_async(BOUND, "an answer that is sure", || async {
        first.release(&[giving_back(asked, mine)]).await.remove(0)
    })
    .await;
    assert!(matches!(released, Released::NotYours(Some(_))), "{released:?}");
    let lease = first.get(&asked.name).await.expect("a read").expect("the record");
    assert_eq!((lease.token, lease.released), (theirs, false), "{lease:?}");
}

#[tokio::test]
async fn term_whose_record_was_lost_leaves_anothers_of_the_same_number_alone() {
    for releases_first in [false, true] {
        let (mut server, scratch) = server_with_a_bucket().await;
        let (first, second) = (scratch.store().await, scratch.store().await);
        let asked = request("job", "first", seconds(300));
        // Over its own connection, too.
        let warm = request("warm", "first", seconds(300));
        let mine = take(&first, &asked).await.token;
        let before = number(&scratch, &key("job")).await;
        let kept_warm = take(&first, &warm).await.token;
        drop(first.renew(&[renewal(&warm, kept_warm)]).await);
        lose_everything_since(&mut server).await;
        let theirs = eventually_async(BOUND, "another term", || async {
            let asked = request("job", "second", seconds(300));
            second.acquire(&asked).await.map(granted)
        })
        .await
        .token;
        assert!(theirs > mine);
        assert_eq!(number(&scratch, &key("job")).await, before, "it came again");
        if releases_first {
            let released = eventually_async(BOUND, "an answer that is sure", || async {
                first.release(&[giving_back(&asked, mine)]).await.remove(0)
            })
            .await;
            assert!(matches!(released, Released::NotYours(Some(_))), "{released:?}");
        }
        term_is_left_to_its_holder(&first, &asked, mine, theirs).await;
    }
}

#[tokio::test]
async fn term_leaves_anothers_alone_after_its_bucket_was_made_again() {
    let scratch = Scratch::on(&shared().await.url());
    let first = scratch.store().await;
    let asked = request("job", "first", seconds(300));
    let mine = take(&first, &asked).await.token;
    let renewed = first.renew(&[renewal(&asked, mine)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    make_again(&scratch).await;
    let second = scratch.store().await;
    let theirs_asked = request("job", "second", seconds(300));
    let theirs = take(&second, &theirs_asked).await.token;
    // As many writes as the first one's.
    let renewed = second.renew(&[renewal(&theirs_asked, theirs)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    term_is_left_to_its_holder(&first, &asked, mine, theirs).await;
}

#[tokio::test]
async fn bucket_whose_numbers_may_come_again_is_told_of() {
    let told = |findings: Vec<tenure_core::Finding>| {
        let mut numbers = findings
            .into_iter()
            .filter(|finding| finding.subject == "numbers");
        numbers.next().expect("they are examined")
    };
    let made_by_tenure = Scratch::new().await.store().await;
    let finding = told(made_by_tenure.examine().await.expect("it answers"));
    assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
    let scratch = Scratch::new().await;
    scratch.beneath().await.make(json!({})).await;
    let finding = told(scratch.store().await.examine().await.expect("it answers"));
    assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
    assert!(finding.repair.expect("a way out").contains("first_seq"));
}

/// What waits in the driver would be sent to a server that may have been started again.
#[tokio::test]
async fn driver_makes_no_connection_again_by_itself() {
    let server = NatsServer::start(NatsOptions::default()).await.expect("a server");
    let proxy = FaultProxy::nats(server.address()).expect("a proxy");
    let store = Scratch::on(&format!("nats://{}", proxy.address())).store().await;
    let asked = request("job", "holder", seconds(300));
    let term = take(&store, &asked).await;
    drop(store.renew(&[renewal(&asked, term.token)]).await);
    let connections = || async {
        let told = server.look("/connz").map_err(|error| error.to_string())?;
        Ok::<_, String>(told["num_connections"].as_u64())
    };
    let are = async |count: u64| {
        eventually_async(BOUND, "so many connections", async || {
            let told = connections().await;
            (told == Ok(Some(count))).then_some(()).ok_or(format!("{told:?}"))
        })
        .await;
    };
    are(2).await;
    proxy.cut_connections();
    are(0).await;
    let renewed = eventually_async(BOUND, "a renewal", || async {
        store.renew(&[renewal(&asked, term.token)]).await.remove(0)
    })
    .await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
}
