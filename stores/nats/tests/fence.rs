//! The fence in a bucket: only the term that claimed writes.

use crate::common::{Scratch, in_time, name, request, seconds, take};
use std::time::Duration;
use tenure_core::{
    Bump, Certainty, Claimed, Cursor, Fault, Fence, FenceError, FencingToken, Horizon, Leases, MarkPage,
    ResourceName, Term,
};
use tenure_nats::NatsFence;
use tenure_testkit::eventually_async;

fn resource(text: &str) -> ResourceName {
    ResourceName::new(text).expect("a test gives a valid name")
}

fn term(lease: &str, token: u64) -> Term {
    Term::new(
        name(lease),
        FencingToken::new(token).expect("a test gives a valid token"),
    )
}

async fn fence(scratch: &Scratch) -> NatsFence {
    let url = scratch.store_url();
    in_time("a fence", || NatsFence::connect(&url, Leases::Elsewhere)).await
}

async fn text(scratch: &Scratch, key: &str) -> Option<String> {
    let (_, value) = scratch.beneath().await.last(key).await?;
    Some(String::from_utf8(value).expect("text"))
}

#[tokio::test]
async fn only_the_term_that_claimed_writes_to_nats() {
    let scratch = Scratch::new().await;
    let (old, new) = (fence(&scratch).await, fence(&scratch).await);
    let (ledger, first, second) = (resource("the ledger"), term("job", 7), term("job", 8));
    let unclaimed = old.put(&ledger, &first, "balance", "1").await;
    assert!(
        matches!(unclaimed, Err(FenceError::Unclaimed { .. })),
        "{unclaimed:?}"
    );
    assert_eq!(
        old.claim(&ledger, &first).await,
        Ok(Claimed::Raised { from: None })
    );
    assert_eq!(old.claim(&ledger, &first).await, Ok(Claimed::Already));
    old.put(&ledger, &first, "balance", "1").await.expect("admitted");
    old.put(&ledger, &first, "balance.of.alice", "2")
        .await
        .expect("admitted");
    let from = Some(first.token);
    assert_eq!(new.claim(&ledger, &second).await, Ok(Claimed::Raised { from }));
    // The old term's fence remembers the mark that it had claimed.
    for stale in [
        old.put(&ledger, &first, "balance", "3").await,
        old.put(&ledger, &first, "new", "3").await,
        old.delete(&ledger, &first, "balance").await,
        old.check(&ledger, &first).await.map(|()| 0),
        old.claim(&ledger, &first).await.map(|_| 0),
    ] {
        assert!(
            matches!(&stale, Err(FenceError::Stale { mark, .. }) if *mark == second.token),
            "{stale:?}"
        );
    }
    assert_eq!(text(&scratch, "balance").await.as_deref(), Some("1"));
    assert_eq!(text(&scratch, "new").await, None);
    new.delete(&ledger, &second, "balance").await.expect("admitted");
    assert_eq!(
        text(&scratch, "balance").await.as_deref(),
        Some(""),
        "a mark of its removal stands there"
    );
    assert_eq!(new.check(&ledger, &second).await, Ok(()));
}

#[tokio::test]
async fn refusals_are_counted_beside_the_mark_in_nats() {
    let scratch = Scratch::new().await;
    let (old, new) = (fence(&scratch).await, fence(&scratch).await);
    let (ledger, first, second) = (resource("ledger"), term("job", 7), term("job", 8));
    new.claim(&ledger, &second).await.expect("claimed");
    for _try in 0..5 {
        old.put(&ledger, &first, "balance", "3")
            .await
            .expect_err("refused");
    }
    old.note_refusals().await;
    let mark = eventually_async(Duration::from_secs(20), "five refusals", || async {
        let mark = new
            .mark(&ledger)
            .await
            .expect("it answers")
            .expect("there is one");
        if mark.refused == 5 {
            Ok(mark)
        } else {
            Err(format!("{mark:?}"))
        }
    })
    .await;
    assert_eq!(
        (mark.token, mark.lease, mark.last_refused),
        (second.token, Some(name("job")), Some(first.token))
    );
    assert_eq!(
        new.put(&ledger, &second, "balance", "1").await.map(|_| ()),
        Ok(()),
        "the mark is as it was"
    );
}

#[tokio::test]
async fn tokens_of_another_lease_and_from_the_future_change_nothing_in_nats() {
    let scratch = Scratch::new().await;
    let fence = fence(&scratch).await;
    let ledger = resource("ledger");
    fence.claim(&ledger, &term("job", 7)).await.expect("claimed");
    let foreign = fence.claim(&ledger, &term("other", 9)).await;
    assert!(matches!(foreign, Err(FenceError::Foreign { .. })), "{foreign:?}");
    let future = fence
        .claim(&ledger, &term("job", FencingToken::MAX.number()))
        .await;
    assert!(
        matches!(
            future,
            Err(FenceError::Future {
                horizon: Horizon::Clock(_),
                ..
            })
        ),
        "{future:?}"
    );
    let mark = fence
        .mark(&ledger)
        .await
        .expect("it answers")
        .expect("there is one");
    assert_eq!(mark.token.number(), 7);
    // Where the lease is in the same bucket, what it has granted is known.
    let store = scratch.store().await;
    let granted = take(&store, &request("here", "a", seconds(60))).await;
    let beside = NatsFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("connects");
    let (seat, next) = (resource("seat"), granted.token.number() + 1);
    let future = beside.claim(&seat, &term("here", next)).await;
    assert!(
        matches!(
            future,
            Err(FenceError::Future {
                horizon: Horizon::Granted(_),
                ..
            })
        ),
        "{future:?}"
    );
    // A mark may have stood here that was removed.
    let over = beside.claim(&seat, &term("here", 1)).await;
    assert!(
        matches!(over, Err(FenceError::Stale { mark, .. }) if mark == granted.token),
        "{over:?}"
    );
    let claimed = beside.claim(&seat, &Term::new(name("here"), granted.token)).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from: None }));
}

/// By the record the term would be over.
#[tokio::test]
async fn what_leases_have_left_behind_in_nats_says_nothing() {
    let scratch = Scratch::new().await;
    take(&scratch.store().await, &request("job", "a", seconds(60))).await;
    let elsewhere = fence(&scratch).await;
    let claimed = elsewhere.claim(&resource("ledger"), &term("job", 5)).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from: None }));
}

#[tokio::test]
async fn bumped_mark_in_nats_admits_nobody_until_a_later_term_claims() {
    let scratch = Scratch::new().await;
    let fence = fence(&scratch).await;
    let ledger = resource("ledger");
    fence.claim(&ledger, &term("job", 7)).await.expect("claimed");
    let bump = Bump {
        resource: ledger.clone(),
        above: FencingToken::new(100).ok(),
        lease: None,
    };
    let mark = fence.bump(&bump).await.expect("bumped");
    assert_eq!(mark.token.number(), 101, "these tokens are counted");
    let stale = fence.put(&ledger, &term("job", 7), "balance", "1").await;
    assert!(matches!(stale, Err(FenceError::Stale { .. })), "{stale:?}");
    let later = term("job", mark.token.number() + 1);
    fence.claim(&ledger, &later).await.expect("a later term claims");
    fence
        .put(&ledger, &later, "balance", "1")
        .await
        .expect("and writes");
    assert_eq!(fence.marks(None).await.expect("a page").marks.len(), 1);
    let after = Cursor::from(&ledger);
    assert_eq!(fence.marks(Some(&after)).await, Ok(MarkPage::last([])));
}

#[tokio::test]
async fn marks_and_keys_that_are_not_for_writing_are_left_alone() {
    let scratch = Scratch::new().await;
    let fence = fence(&scratch).await;
    let (ledger, first) = (resource("ledger"), term("job", 7));
    fence.claim(&ledger, &first).await.expect("claimed");
    for key in [
        "",
        "a b",
        ">",
        "lease.job",
        "tenure-fence.ledger",
        "tenure-refusals.ledger",
    ] {
        let error = fence
            .put(&ledger, &first, key, "1")
            .await
            .expect_err("it is refused");
        assert!(
            matches!(&error, FenceError::Store(error) if error.fault == Fault::Invalid),
            "{key}: {error}"
        );
    }
    scratch
        .beneath()
        .await
        .put("tenure-fence.ledger", b"green", &[])
        .await;
    let error = fence.claim(&ledger, &term("job", 8)).await.expect_err("no mark");
    assert!(
        matches!(&error, FenceError::Store(error) if error.fault == Fault::Unreadable),
        "{error}"
    );
    assert_eq!(
        text(&scratch, "tenure-fence.ledger").await.as_deref(),
        Some("green")
    );
}

/// Not by raising it to what it has.
#[tokio::test]
async fn value_that_is_too_large_for_the_bucket_is_refused_with_the_way_out() {
    let scratch = Scratch::new().await;
    let limit = serde_json::json!({ "max_msg_size": 8_192 });
    scratch.beneath().await.make(limit).await;
    let (fence, ledger, term) = (fence(&scratch).await, resource("ledger"), term("job", 7));
    fence.claim(&ledger, &term).await.expect("claimed");
    let written = fence.put(&ledger, &term, "balance", vec![b'1'; 8_192]).await;
    let Err(FenceError::Store(error)) = written else {
        panic!("{written:?}");
    };
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unsupported, Certainty::NotApplied),
        "{error}"
    );
    assert!(
        error.message.contains("--max-msg-size") && !error.message.contains("to 8 KiB"),
        "{error}"
    );
}
