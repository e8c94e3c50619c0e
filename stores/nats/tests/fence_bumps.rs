//! Marks that an operator has raised: they admit nobody until a term has claimed them.

use crate::common::{Scratch, name, request, seconds, shared, take};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::{
    Bump, Certainty, Claimed, Fault, Fence, FenceError, FencingToken, Leases, Mark, ResourceName, Term,
};
use tenure_nats::NatsFence;
use tenure_testkit::{FaultProxy, RequestFault};

/// The mark of "ledger".
const MARK: &str = "tenure-fence.ledger";

/// Nothing happens to the request as long as the test runs.
const NEVER_AGAIN: RequestFault = RequestFault::DuplicateLater(Duration::from_secs(3_600));

fn ledger() -> ResourceName {
    ResourceName::new("ledger").expect("a name")
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).expect("a token")
}

fn term(lease: &str, number: u64) -> Term {
    Term::new(name(lease), token(number))
}

fn bump() -> Bump {
    Bump {
        resource: ledger(),
        above: None,
        lease: None,
    }
}

async fn fence(scratch: &Scratch) -> NatsFence {
    NatsFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence")
}

/// A mark that term 7 of "nightly" had claimed before it was bumped.
async fn bumped_after_a_claim() -> (Scratch, NatsFence, Mark) {
    let scratch = Scratch::new().await;
    let fence = fence(&scratch).await;
    let claimed = fence.claim(&ledger(), &term("nightly", 7)).await;
    claimed.expect("a claim");
    let mark = fence.bump(&bump()).await.expect("bumped");
    (scratch, fence, mark)
}

/// Both ways to write, each by one.
async fn written(fence: &NatsFence, term: &Term) -> [Result<(), FenceError>; 2] {
    [
        fence.put(&ledger(), term, "balance", "1").await.map(drop),
        fence.delete(&ledger(), term, "balance").await.map(drop),
    ]
}

/// The mark as it is stored.
async fn stored(scratch: &Scratch) -> Value {
    let (_, value) = scratch.beneath().await.last(MARK).await.expect("a mark");
    serde_json::from_slice(&value).expect("JSON")
}

#[tokio::test]
async fn a_mark_in_nats_that_was_bumped_admits_nobody_of_its_own_number_until_it_is_claimed() {
    let (scratch, bumped_here, mark) = bumped_after_a_claim().await;
    let same = term("nightly", mark.token.number());
    // Whoever remembers the mark, and who has yet to read it.
    let elsewhere = fence(&scratch).await;
    for fence in [&bumped_here, &elsewhere] {
        let [put, deleted] = written(fence, &same).await;
        for refused in [put, deleted, fence.check(&ledger(), &same).await] {
            assert!(
                matches!(refused, Err(FenceError::Unclaimed { .. })),
                "{refused:?}"
            );
        }
    }
    assert_eq!(
        scratch.beneath().await.last("balance").await,
        None,
        "a refused write is there"
    );
    // It may be the very next token that its lease grants.
    let from = Some(mark.token);
    assert_eq!(
        elsewhere.claim(&ledger(), &same).await,
        Ok(Claimed::Raised { from })
    );
    for fence in [&bumped_here, &elsewhere] {
        assert_eq!(fence.claim(&ledger(), &same).await, Ok(Claimed::Already));
        assert_eq!(fence.check(&ledger(), &same).await, Ok(()));
        assert_eq!(written(fence, &same).await, [Ok(()), Ok(())]);
    }
}

/// As after a restore of the data: the mark is older than the term, and so old that its number is none of a
/// clock.
#[tokio::test]
async fn a_bump_in_nats_is_above_what_its_lease_was_granted() {
    let scratch = Scratch::new().await;
    let fence = fence(&scratch).await;
    let claimed = fence.claim(&ledger(), &term("nightly", 7)).await;
    claimed.expect("a claim");
    let asked = request("nightly", "a", seconds(60));
    let granted = take(&scratch.store().await, &asked).await.token;
    let mark = fence.bump(&bump()).await.expect("bumped");
    assert!(mark.token > granted, "{mark:?} and a term {granted}");
}

#[tokio::test]
async fn a_bumped_mark_in_nats_still_belongs_to_its_lease() {
    let (_scratch, fence, mark) = bumped_after_a_claim().await;
    assert_eq!(mark.lease, Some(name("nightly")));
    for number in [mark.token.number(), mark.token.number() + 1] {
        let foreign = term("hourly", number);
        let [put, deleted] = written(&fence, &foreign).await;
        for refused in [
            fence.claim(&ledger(), &foreign).await.map(drop),
            fence.check(&ledger(), &foreign).await,
            put,
            deleted,
        ] {
            assert!(matches!(refused, Err(FenceError::Foreign { .. })), "{refused:?}");
        }
    }
    // Bumped again, and bound to the other lease.
    let bump = Bump {
        lease: Some(name("hourly")),
        ..bump()
    };
    let moved = fence.bump(&bump).await.expect("bumped");
    assert_eq!(moved.lease, bump.lease);
    let claimed = fence
        .claim(&ledger(), &term("hourly", moved.token.number()))
        .await;
    let from = Some(moved.token);
    assert_eq!(claimed, Ok(Claimed::Raised { from }));
}

#[tokio::test]
async fn a_mark_in_nats_whose_tokens_are_counted_is_bumped_by_counting() {
    let (_scratch, fence, mark) = bumped_after_a_claim().await;
    assert_eq!(mark.token, token(8));
    // Tokens that follow the clock: above the clock, and above them.
    let clocked = Bump {
        above: Some(token(1_000_000_000_000)),
        ..bump()
    };
    let mark = fence.bump(&clocked).await.expect("bumped");
    assert!(mark.token > token(1_700_000_000_000), "{mark:?}");
    // Nothing is known of the tokens.
    let fresh = Bump {
        resource: ResourceName::new("fresh").expect("a name"),
        ..bump()
    };
    let mark = fence.bump(&fresh).await.expect("bumped");
    assert!(mark.token > token(1_700_000_000_000), "{mark:?}");
}

#[tokio::test]
async fn a_mark_in_nats_of_an_earlier_tenure_is_read() {
    let scratch = Scratch::new().await;
    let (fence, beneath) = (fence(&scratch).await, scratch.beneath().await);
    let holder = term("nightly", 9);
    let earlier = json!({ "form": 1, "lease": "nightly", "token": 9 }).to_string();
    beneath.put(MARK, earlier.as_bytes(), &[]).await;
    assert_eq!(fence.check(&ledger(), &holder).await, Ok(()));
    assert_eq!(fence.claim(&ledger(), &holder).await, Ok(Claimed::Already));
    assert_eq!(written(&fence, &holder).await, [Ok(()), Ok(())]);
    assert_eq!(fence.bump(&bump()).await.expect("bumped").token, token(10));
}

#[tokio::test]
async fn a_claim_in_nats_leaves_nothing_of_the_bump_in_the_mark() {
    let (scratch, fence, mark) = bumped_after_a_claim().await;
    let number = mark.token.number();
    let bumped = json!({ "form": 1, "lease": "nightly", "token": number, "bumped": number });
    assert_eq!(stored(&scratch).await, bumped);
    let same = term("nightly", number);
    fence.claim(&ledger(), &same).await.expect("a claim");
    let claimed = json!({ "form": 1, "lease": "nightly", "token": number });
    assert_eq!(stored(&scratch).await, claimed);
    // What is no number is left as it is.
    let damaged = json!({ "form": 1, "lease": "nightly", "token": number, "bumped": "yes" });
    let damage = damaged.to_string();
    scratch.beneath().await.put(MARK, damage.as_bytes(), &[]).await;
    let refused = fence.claim(&ledger(), &same).await;
    assert!(
        matches!(&refused, Err(FenceError::Store(error)) if error.fault == Fault::Unreadable),
        "{refused:?}"
    );
    assert_eq!(stored(&scratch).await, damaged);
}

#[tokio::test]
async fn bump_in_nats_that_is_not_heard_of_after_it_was_made_is_unknown() {
    let (scratch, _fence, before) = bumped_after_a_claim().await;
    let proxy = FaultProxy::nats(shared().await.address()).expect("a proxy");
    let beside = Scratch {
        url: format!("nats://{}", proxy.address()),
        bucket: scratch.bucket.clone(),
    };
    let proxied = NatsFence::connect(&beside.store_url(), Leases::Elsewhere).await;
    let proxied = proxied.expect("a fence");
    proxied.mark(&ledger()).await.expect("it answers");
    // It looks, raises, and looks.
    proxy.next_commands(1, "STREAM.MSG.GET", NEVER_AGAIN);
    proxy.next_commands(1, "STREAM.MSG.GET", RequestFault::CutBefore);
    let error = proxied.bump(&bump()).await.expect_err("the look was cut");
    assert_eq!(proxy.counts().cut_before, 1, "the fault happened");
    assert!(
        matches!(&error, FenceError::Store(error) if error.certainty == Certainty::Unknown),
        "{error:?}"
    );
    assert!(stored(&scratch).await["token"].as_u64() > Some(before.token.number()));
}
