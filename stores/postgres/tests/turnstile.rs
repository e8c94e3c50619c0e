//! Who waits for whom at a mark: writers that overlap keep no claim out, and a claim that waits locks nobody
//! in.
use crate::common::PATIENCE;
use crate::fence::{fenced, ledger, term};
use crate::locked_rows::waited_for;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::{Claimed, Fence, FenceError, ResourceName, Term};
use tenure_postgres::PostgresFence;
use tenure_testkit::{Postgres, eventually_async, in_one_of};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_postgres::Transaction;

/// Writes of the old term, each open while the next begins.
const WRITERS: u64 = 4;

/// So long that there is no moment without one of them: a claim that is kept out is so in each of its tries.
const OPEN_FOR: Duration = Duration::from_millis(200);

fn claiming(
    fence: &PostgresFence,
    resource: &ResourceName,
    term: Term,
) -> JoinHandle<Result<Claimed, FenceError>> {
    let (fence, resource) = (fence.clone(), resource.clone());
    tokio::spawn(async move { fence.claim(&resource, &term).await })
}

/// Whether a claim has come to wait for this transaction; not, if it has ended before.
pub(super) async fn waits(claim: &JoinHandle<Result<Claimed, FenceError>>, inside: &Transaction<'_>) -> bool {
    let ended = async {
        while !claim.is_finished() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = waited_for(inside, 1) => true,
        () = ended => false,
    }
}

/// Tries of a claim on a machine so slow that its time is over before those have left whom it waits for.
const TRIES_MAX: u32 = 3;

async fn made_again(
    fence: &PostgresFence,
    resource: &ResourceName,
    term: &Term,
) -> Result<Claimed, FenceError> {
    let mut claimed = fence.claim(resource, term).await;
    for _try in 1..TRIES_MAX {
        if !matches!(claimed, Err(FenceError::Store(_))) {
            break;
        }
        claimed = fence.claim(resource, term).await;
    }
    claimed
}

/// Locks of rows alone would let each writer in beside the one before it, past the claim.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_the_old_term_that_overlap_without_a_gap_do_not_keep_the_claim_out() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let (over, inside) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let (fence, uri) = (fence.clone(), scratch.uri.clone());
        let (over, inside) = (Arc::clone(&over), Arc::clone(&inside));
        writers.spawn(async move {
            let mut client = Postgres::client(&uri).await.unwrap();
            tokio::time::sleep(OPEN_FOR * u32::try_from(number).unwrap() / 4).await;
            let mut written = 0;
            while !over.load(Ordering::Relaxed) {
                let transaction = client.transaction().await.unwrap();
                match fence.enter(&transaction, &ledger(), &term("nightly", 5)).await {
                    Ok(()) => {
                        inside.fetch_add(u64::from(written == 0), Ordering::Relaxed);
                        written += 1;
                    }
                    Err(FenceError::Stale { .. }) => break,
                    Err(other) => panic!("{other}"),
                }
                tokio::time::sleep(OPEN_FOR).await;
                transaction.commit().await.unwrap();
            }
            written
        });
    }
    let all_write = async || inside.load(Ordering::Relaxed) == WRITERS;
    eventually_async(PATIENCE, "all of them inside", all_write).await;
    let claimed = made_again(&fence, &ledger(), &term("nightly", 6)).await;
    over.store(true, Ordering::Relaxed);
    assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}");
    let written = timeout(PATIENCE, writers.join_all()).await.unwrap();
    assert!(written.iter().all(|writes| *writes > 0), "{written:?}");
    let mut client = scratch.client().await;
    let transaction = client.transaction().await.unwrap();
    let refused = fence.enter(&transaction, &ledger(), &term("nightly", 5)).await;
    assert!(matches!(refused, Err(FenceError::Stale { .. })), "{refused:?}");
}

/// Whoever is inside comes in again at once, by the driver and by the function, however many claims wait.
#[tokio::test]
async fn transaction_that_has_entered_enters_again_while_a_claim_waits_for_it() {
    in_one_of(
        TRIES_MAX,
        "no claim has waited long enough",
        enters_again_while_a_claim_waits,
    )
    .await;
}

/// False if the claim's time was over before the test was at its end: nothing is known of who entered then.
async fn enters_again_while_a_claim_waits() -> bool {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let (mut client, mut other) = (scratch.client().await, scratch.client().await);
    let mut other_still = scratch.client().await;
    let inside = client.transaction().await.unwrap();
    fence
        .enter(&inside, &ledger(), &term("nightly", 5))
        .await
        .unwrap();
    let claim = claiming(&fence, &ledger(), term("nightly", 6));
    let outside = other.transaction().await.unwrap();
    if !waits(&claim, &inside).await {
        let claimed = claim.await.unwrap();
        assert!(
            matches!(claimed, Err(FenceError::Store(_))),
            "it did not wait: {claimed:?}"
        );
        return false;
    }
    for _ in 0..3 {
        fence
            .enter(&inside, &ledger(), &term("nightly", 5))
            .await
            .unwrap();
        let statement = format!("SELECT {}.enter($1, 'nightly', 5)", scratch.schema);
        inside.execute(&statement, &[&ledger().as_str()]).await.unwrap();
    }
    // A new one waits, by the driver and by the function, and finds the term that was claimed.
    let (old, resource) = (term("nightly", 5), ledger());
    let calling = other_still.transaction().await.unwrap();
    let function = format!("SELECT {}.enter($1, 'nightly', 5)", scratch.schema);
    let (entered, called, ()) = tokio::join!(
        fence.enter(&outside, &resource, &old),
        async { calling.execute(&function, &[&resource.as_str()]).await },
        async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            inside.commit().await.unwrap();
        }
    );
    let claimed = claim.await.unwrap();
    if matches!(claimed, Err(FenceError::Store(_))) {
        return false;
    }
    assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}");
    assert!(matches!(entered, Err(FenceError::Stale { .. })), "{entered:?}");
    let refused = called.unwrap_err();
    assert_eq!(
        refused.code().map(|code| code.code()),
        Some("TN001"),
        "{refused:?}"
    );
    true
}

/// Two that hold what the other one wants, each with a claim between: the server lets them by, and nobody
/// fails.
#[tokio::test]
async fn claims_that_wait_between_two_transactions_of_several_resources_make_no_deadlock() {
    let (scratch, fence) = fenced().await;
    let (one, two) = (
        ResourceName::new("one").unwrap(),
        ResourceName::new("two").unwrap(),
    );
    let (old, new) = (term("nightly", 5), term("nightly", 6));
    for resource in [&one, &two] {
        fence.claim(resource, &old).await.unwrap();
    }
    let (mut first, mut second) = (scratch.client().await, scratch.client().await);
    let first = first.transaction().await.unwrap();
    let second = second.transaction().await.unwrap();
    fence.enter(&first, &one, &old).await.unwrap();
    fence.enter(&second, &two, &old).await.unwrap();
    let claims = [&one, &two].map(|resource| claiming(&fence, resource, new.clone()));
    for (claim, inside) in claims.iter().zip([&first, &second]) {
        let _or_its_time_was_over = waits(claim, inside).await;
    }
    let crossed = tokio::join!(fence.enter(&first, &two, &old), fence.enter(&second, &one, &old));
    assert_eq!(crossed, (Ok(()), Ok(())));
    first.commit().await.unwrap();
    second.commit().await.unwrap();
    for claim in claims {
        // On a machine so slow that its time was over, it is made again.
        let claimed = claim.await.unwrap();
        assert!(
            matches!(claimed, Ok(Claimed::Raised { .. }) | Err(FenceError::Store(_))),
            "{claimed:?}"
        );
    }
    for resource in [&one, &two] {
        fence.claim(resource, &new).await.unwrap();
    }
}
