//! Who is admitted, and what a claim waits for.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_core::{
    Bump, Certainty, Claimed, Cursor, Fault, Fence, FenceError, FencingToken, LeaseName, MarkPage,
    ResourceName, Term,
};
use tenure_watermark::Watermark;

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn term(number: u64) -> Term {
    Term::new(LeaseName::new("nightly").unwrap(), token(number))
}

#[tokio::test]
async fn a_mark_only_rises_and_only_its_term_is_admitted() {
    let fence = Watermark::new();
    let unclaimed = fence.admit(&ledger(), &term(5)).unwrap_err();
    assert!(matches!(unclaimed, FenceError::Unclaimed { .. }), "{unclaimed}");
    let first = fence.claim(&ledger(), &term(5)).await;
    assert_eq!(first, Ok(Claimed::Raised { from: None }));
    assert_eq!(fence.claim(&ledger(), &term(5)).await, Ok(Claimed::Already));
    drop(fence.admit(&ledger(), &term(5)).unwrap());
    let early = fence.admit(&ledger(), &term(9)).unwrap_err();
    assert!(matches!(early, FenceError::Unclaimed { .. }), "{early}");
    let second = fence.claim(&ledger(), &term(9)).await;
    assert_eq!(second, Ok(Claimed::Raised { from: Some(token(5)) }));
    for refused in [
        fence.admit(&ledger(), &term(5)).unwrap_err(),
        fence.claim(&ledger(), &term(5)).await.unwrap_err(),
    ] {
        assert!(
            matches!(refused, FenceError::Stale { mark, .. } if mark == token(9)),
            "{refused}"
        );
    }
    let mark = fence.mark(&ledger()).await.unwrap().unwrap();
    // Early and stale ones; one that has no mark to be counted beside is not.
    assert_eq!(
        (mark.token, mark.refused, mark.last_refused),
        (token(9), 3, Some(token(5)))
    );
    assert_eq!(fence.marks(None).await, Ok(MarkPage::last([mark])));
    assert_eq!(
        fence.marks(Some(&Cursor::from(&ledger()))).await,
        Ok(MarkPage::last([]))
    );
}

#[tokio::test]
async fn tokens_of_another_lease_and_from_the_future_change_nothing() {
    let fence = Watermark::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let far = fence
        .claim(&ledger(), &term(now + 2 * 86_400_000))
        .await
        .unwrap_err();
    assert!(matches!(far, FenceError::Future { .. }), "{far}");
    assert_eq!(fence.mark(&ledger()).await, Ok(None));
    fence.claim(&ledger(), &term(now)).await.unwrap();
    let other = Term::new(LeaseName::new("hourly").unwrap(), token(now + 1));
    for foreign in [
        fence.claim(&ledger(), &other).await.unwrap_err(),
        fence.admit(&ledger(), &other).unwrap_err(),
    ] {
        assert!(matches!(foreign, FenceError::Foreign { .. }), "{foreign}");
    }
    // Nor where there is a mark.
    let far = fence
        .claim(&ledger(), &term(now + 2 * 86_400_000))
        .await
        .unwrap_err();
    assert!(matches!(far, FenceError::Future { .. }), "{far}");
    drop(fence.admit(&ledger(), &term(now)).unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_claim_waits_for_what_was_admitted_and_refuses_the_rest_meanwhile() {
    let fence = Watermark::new();
    fence.claim(&ledger(), &term(5)).await.unwrap();
    let inside = fence.admit(&ledger(), &term(5)).unwrap();
    let claim = tokio::spawn({
        let fence = fence.clone();
        async move { fence.claim(&ledger(), &term(9)).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        !claim.is_finished(),
        "the claim overtook a write that was admitted"
    );
    let refused = fence.admit(&ledger(), &term(5)).unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused}");
    let early = fence.admit(&ledger(), &term(9)).unwrap_err();
    assert!(
        matches!(&early, FenceError::Store(error) if error.fault == Fault::Busy),
        "{early}"
    );
    drop(inside);
    assert_eq!(claim.await.unwrap(), Ok(Claimed::Raised { from: Some(token(5)) }));
    drop(fence.admit(&ledger(), &term(9)).unwrap());
}

/// Both wait for the same write; the mark of the later one may not be on disk yet when the earlier one wakes.
#[tokio::test(start_paused = true)]
async fn a_claim_that_a_later_one_has_overtaken_while_it_waited_is_refused() {
    let fence = Watermark::new();
    fence.claim(&ledger(), &term(5)).await.unwrap();
    let inside = fence.admit(&ledger(), &term(5)).unwrap();
    let claims = [9, 11].map(|number| {
        let fence = fence.clone();
        tokio::spawn(async move { fence.claim(&ledger(), &term(number)).await })
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(inside);
    let [overtaken, later] = claims;
    let refused = overtaken.await.unwrap().unwrap_err();
    assert!(
        matches!(refused, FenceError::Stale { mark, .. } if mark == token(11)),
        "{refused}"
    );
    assert_eq!(later.await.unwrap(), Ok(Claimed::Raised { from: Some(token(9)) }));
    drop(fence.admit(&ledger(), &term(11)).unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_given_up_or_came_too_early_is_made_again() {
    let fence = Watermark::new();
    fence.claim(&ledger(), &term(5)).await.unwrap();
    let inside = fence.admit(&ledger(), &term(5)).unwrap();
    let late = fence.claim(&ledger(), &term(9)).await.unwrap_err();
    // It has refused every earlier term since.
    assert!(
        matches!(&late, FenceError::Store(error) if (error.fault, error.certainty) == (Fault::TimedOut, Certainty::Unknown)),
        "{late}"
    );
    assert_eq!(fence.mark(&ledger()).await.unwrap().unwrap().token, token(9));
    assert!(late.to_string().contains("1 writes of earlier terms"), "{late}");
    let (ledger, later) = (ledger(), term(9));
    let given_up = tokio::time::timeout(Duration::from_millis(1), fence.claim(&ledger, &later));
    assert!(given_up.await.is_err());
    drop(inside);
    let claimed = fence.claim(&ledger, &later).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from: Some(token(5)) }));
}

#[tokio::test]
async fn a_bumped_mark_admits_nobody_until_a_later_term_claims() {
    let fence = Watermark::new();
    fence.claim(&ledger(), &term(5)).await.unwrap();
    let bump = Bump {
        resource: ledger(),
        above: Some(token(7)),
        lease: None,
    };
    let bumped = fence.bump(&bump).await.unwrap();
    // Of a store that counts: above the clock, it would refuse every later term for ever.
    assert_eq!(bumped.token, token(8));
    let refused = fence.admit(&ledger(), &term(5)).unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused}");
    let later = term(bumped.token.number());
    let refused = fence.admit(&ledger(), &later).unwrap_err();
    assert!(matches!(refused, FenceError::Unclaimed { .. }), "{refused}");
    fence.claim(&ledger(), &later).await.unwrap();
    drop(fence.admit(&ledger(), &later).unwrap());
}

/// 64 tasks of ever later terms read, add and write back a number that nothing else protects.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_contending_tasks_lose_no_update() {
    let fence = Watermark::new();
    let (value, tokens) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let history = Arc::new(Mutex::new(Vec::new()));
    let tasks = (0..64).map(|index| {
        let (fence, value, tokens, history) = (
            fence.clone(),
            Arc::clone(&value),
            Arc::clone(&tokens),
            Arc::clone(&history),
        );
        tokio::spawn(async move {
            let mut written = 0;
            while written < 10 {
                let term = term(tokens.fetch_add(1, Ordering::SeqCst) + 1);
                if fence.claim(&ledger(), &term).await.is_err() {
                    continue;
                }
                while written < 10 {
                    let read = value.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    let Ok(admitted) = fence.admit(&ledger(), &term) else {
                        break;
                    };
                    tokio::task::yield_now().await;
                    value.store(read + 1, Ordering::SeqCst);
                    history.lock().unwrap().push((term.token, read));
                    drop(admitted);
                    written += 1;
                }
                // Each its own time, or all would end each other's terms for ever.
                tokio::time::sleep(Duration::from_micros(index * 50)).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let history = history.lock().unwrap();
    assert_eq!(history.len(), 640);
    let terms: BTreeSet<FencingToken> = history.iter().map(|(token, _)| *token).collect();
    assert!(
        terms.len() >= 64,
        "a term for each task at least: {}",
        terms.len()
    );
    for (index, (token, read)) in history.iter().enumerate() {
        assert_eq!(*read, index as u64, "an update was lost");
        assert!(
            index == 0 || *token >= history[index - 1].0,
            "an older term wrote after a later one"
        );
    }
    assert_eq!(value.load(Ordering::SeqCst), history.len() as u64);
}
