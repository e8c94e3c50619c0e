//! Marks that are raised behind the gate's back.
use crate::common::{LONG, Marks, ledger, term};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Bump, Fence, Term};
use tenure_http::{Gate, Refusal};
use tenure_watermark::Watermark;
use tokio::time::{Instant, sleep, timeout};

/// Longer than a gate relies on what the fence has said.
const UNTIL_OLD: Duration = Duration::from_millis(2_500);

/// Shows the term again and again, until it is refused.
async fn no_longer_admitted(gate: &Gate, term: &Term) -> Refusal {
    let end = Instant::now() + LONG;
    loop {
        match gate.admit(&ledger(), term).await {
            Ok(_) => assert!(Instant::now() < end, "it is let in for ever"),
            Err(refused) => return refused,
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_mark_bumped_behind_a_gate_ends_the_term_that_it_lets_in() {
    let marks = Marks::new();
    let gate = marks.gate();
    gate.admit(&ledger(), &term(7)).await.unwrap();
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let bumped = marks.fence().bump(&bump).await.unwrap().token;
    let refused = no_longer_admitted(&gate, &term(7)).await;
    assert!(
        matches!(&refused, Refusal::Stale { mark, .. } if *mark == bumped),
        "{refused}"
    );
    gate.admit(&ledger(), &term(bumped.number() + 1)).await.unwrap();
}

/// Nobody of an old term slips in beside the request that has the fence asked. In a time of its own, in which
/// no machine is so slow that requests are let in for want of an answer.
#[tokio::test(start_paused = true)]
async fn after_a_while_without_requests_nobody_is_let_in_before_the_fence_was_asked() {
    let marks = Marks::new();
    let gate = Arc::new(marks.gate());
    gate.admit(&ledger(), &term(7)).await.unwrap();
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    marks.fence().bump(&bump).await.unwrap();
    sleep(UNTIL_OLD).await;
    let requests: Vec<_> = (0..100)
        .map(|_| {
            let gate = gate.clone();
            tokio::spawn(async move { gate.admit(&ledger(), &term(7)).await.map(drop) })
        })
        .collect();
    for request in requests {
        let refused = timeout(LONG, request).await.unwrap().unwrap();
        assert!(matches!(refused, Err(Refusal::Stale { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn term_that_the_fence_has_confirmed_goes_on_while_its_store_does_not_answer() {
    let marks = Marks::new();
    let gate = marks.gate();
    gate.admit(&ledger(), &term(7)).await.unwrap();
    let blocker = marks.connection();
    blocker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for _ in 0..2 {
        sleep(UNTIL_OLD).await;
        timeout(LONG, gate.admit(&ledger(), &term(7)))
            .await
            .unwrap()
            .unwrap();
    }
    blocker.execute_batch("DROP TABLE tenure_fence; COMMIT").unwrap();
    sleep(UNTIL_OLD).await;
    gate.admit(&ledger(), &term(7)).await.unwrap();
}

/// A watermark refuses earlier terms from the moment that a claim begins, also of one that it cannot keep.
#[tokio::test]
async fn claim_that_a_watermark_cannot_keep_lets_nobody_in_and_ends_the_term_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marks");
    let gate = Gate::new(Arc::new(Watermark::open(&path).unwrap()));
    gate.admit(&ledger(), &term(7)).await.unwrap();
    // Permissions would not stop root: a directory in the way of the new file does.
    let in_the_way = path.with_extension("new");
    std::fs::create_dir(&in_the_way).unwrap();
    let refused = gate.admit(&ledger(), &term(8)).await.unwrap_err();
    assert!(matches!(refused, Refusal::Unavailable { .. }), "{refused}");
    let refused = no_longer_admitted(&gate, &term(7)).await;
    assert!(matches!(refused, Refusal::Stale { .. }), "{refused}");
    std::fs::remove_dir(&in_the_way).unwrap();
    gate.admit(&ledger(), &term(8)).await.unwrap();
}

/// As an operator restores it beside a service that runs: what is bumped there must end the term that is let
/// in here.
#[tokio::test]
async fn term_behind_a_gate_whose_watermark_was_replaced_is_let_in_no_more() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("marks");
    let gate = Gate::new(Arc::new(Watermark::open(&path).unwrap()));
    gate.admit(&ledger(), &term(7)).await.unwrap();
    let kept = std::fs::read(&path).unwrap();
    std::fs::rename(&folder, scratch.path().join("before")).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&path, kept).unwrap();
    let refused = no_longer_admitted(&gate, &term(7)).await;
    assert!(matches!(refused, Refusal::Unavailable { .. }), "{refused}");
    // It stays so: what the gate remembers lets nobody in again.
    let refused = gate.admit(&ledger(), &term(7)).await.unwrap_err();
    assert!(matches!(refused, Refusal::Unavailable { .. }), "{refused}");
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    Watermark::open(&path).unwrap().bump(&bump).await.unwrap();
    let refused = gate.admit(&ledger(), &term(7)).await.unwrap_err();
    assert!(matches!(refused, Refusal::Unavailable { .. }), "{refused}");
}

/// As after its store was restored.
#[tokio::test]
async fn term_whose_claim_the_fence_has_forgotten_claims_again() {
    let marks = Marks::new();
    let gate = marks.gate();
    gate.admit(&ledger(), &term(7)).await.unwrap();
    let forgets = marks.connection();
    forgets.execute_batch("DELETE FROM tenure_fence").unwrap();
    let end = Instant::now() + LONG;
    while marks.fence().mark(&ledger()).await.unwrap().is_none() {
        assert!(Instant::now() < end, "it is let in without a mark for ever");
        sleep(Duration::from_millis(50)).await;
        gate.admit(&ledger(), &term(7)).await.unwrap();
    }
}
