//! A transaction that has entered the fence and ends before its commit, without a word: what is written then
//! is not in it.
use crate::common::Scratch;
use crate::fence::{ADD, cents, fenced, ledger, term, token, until_somebody_waits};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Transaction, TxOpts};
use tenure_core::{Certainty, Claimed, Fault, Fence, FenceError, ResourceName};
use tenure_mysql::MysqlFence;

/// The driver's word for the victim of a deadlock, of which nothing is left.
const DEADLOCK: u16 = 1213;

async fn begun(client: &mut Conn) -> Transaction<'_> {
    client.start_transaction(TxOpts::default()).await.unwrap()
}

/// Whoever goes on after this works in no transaction.
async fn truncate(transaction: &mut Transaction<'_>) {
    transaction.query_drop("TRUNCATE TABLE staging").await.unwrap();
}

/// The same, as the server's choice among two that wait for each other: of the one that has changed less.
async fn lose_a_deadlock(transaction: &mut Transaction<'_>, scratch: &Scratch) {
    let first = "UPDATE account SET cents = cents + 1000 WHERE id = 1";
    transaction.query_drop(first).await.unwrap();
    let mut other = scratch.client().await;
    other.query_drop("SET @tenure_term = '5 nightly'").await.unwrap();
    other.query_drop("START TRANSACTION").await.unwrap();
    let more = "INSERT INTO staging WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) \
                SELECT i FROM n";
    other.query_drop(more).await.unwrap();
    other
        .query_drop("UPDATE account SET cents = 0 WHERE id = 2")
        .await
        .unwrap();
    let waiting = tokio::spawn(async move {
        other
            .query_drop("UPDATE account SET cents = 0 WHERE id = 1")
            .await
            .unwrap();
        other.query_drop("COMMIT").await.unwrap();
    });
    until_somebody_waits(scratch).await;
    let second = "UPDATE account SET cents = cents + 1000 WHERE id = 2";
    let error = transaction.query_drop(second).await.unwrap_err();
    assert!(
        matches!(&error, Error::Server(answer) if answer.code == DEADLOCK),
        "{error:?}"
    );
    waiting.await.unwrap();
}

async fn accounts() -> (Scratch, MysqlFence) {
    let (scratch, fence) = fenced().await;
    scratch
        .sql("INSERT INTO account VALUES (2, 0); CREATE TABLE staging (id INT PRIMARY KEY)")
        .await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    (scratch, fence)
}

fn is_told(committed: Result<(), FenceError>) -> String {
    let Err(FenceError::Store(error)) = &committed else {
        panic!("{committed:?}")
    };
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Invalid, Certainty::Unknown),
        "{error}"
    );
    assert!(error.message.contains("was not fenced"), "{error}");
    error.message.clone()
}

/// That the write of the unguarded table is there is the limit that README and `MysqlFence::enter` name.
#[tokio::test]
async fn commit_by_itself_or_a_deadlock_after_entering_is_told_at_the_commit_and_a_guarded_table_refuses() {
    for ending in ["truncate", "deadlock"] {
        for guarded in [false, true] {
            let told = format!("{ending}, guarded: {guarded}");
            let (scratch, fence) = accounts().await;
            if guarded {
                fence.guard("account", &ledger()).await.unwrap();
            }
            let mut client = scratch.client().await;
            let mut transaction = begun(&mut client).await;
            fence
                .enter(&mut transaction, &ledger(), &term("nightly", 5))
                .await
                .unwrap();
            match ending {
                "truncate" => truncate(&mut transaction).await,
                _ => lose_a_deadlock(&mut transaction, &scratch).await,
            }
            let claimed = fence.claim(&ledger(), &term("nightly", 9)).await;
            assert_eq!(claimed, Ok(Claimed::Raised { from: Some(token(5)) }), "{told}");
            let written = transaction.query_drop("UPDATE account SET cents = 50").await;
            if guarded {
                let error = written.expect_err(&told);
                let refusal = fence
                    .refusal(&ledger(), &term("nightly", 5), &error)
                    .await
                    .unwrap();
                assert!(
                    matches!(refusal, Some(FenceError::Stale { .. })),
                    "{told}: {error:?}"
                );
            } else {
                written.expect(&told);
            }
            is_told(fence.commit(transaction, &ledger()).await);
            assert_eq!(cents(&scratch).await, if guarded { 0 } else { 100 }, "{told}");
        }
    }
}

/// There another transaction begins by itself, with nobody's entry.
#[tokio::test]
async fn what_a_session_without_autocommit_writes_after_its_entry_has_ended_is_rolled_back() {
    let (scratch, fence) = accounts().await;
    let other = ResourceName::new("other").unwrap();
    fence.claim(&other, &term("nightly", 5)).await.unwrap();
    let mut client = scratch.client().await;
    client.query_drop("SET autocommit = 0").await.unwrap();
    for enters_another in [false, true] {
        let mut transaction = begun(&mut client).await;
        fence
            .enter(&mut transaction, &ledger(), &term("nightly", 5))
            .await
            .unwrap();
        truncate(&mut transaction).await;
        transaction.query_drop(ADD).await.unwrap();
        if enters_another {
            fence
                .enter(&mut transaction, &other, &term("nightly", 5))
                .await
                .unwrap();
        }
        is_told(fence.commit(transaction, &ledger()).await);
        assert_eq!(cents(&scratch).await, 0, "{enters_another}");
    }
}

#[tokio::test]
async fn transaction_is_committed_by_the_fence_only_where_it_has_entered_and_kept_its_entry() {
    let (scratch, fence) = accounts().await;
    let mut client = scratch.client().await;
    let never_entered = begun(&mut client).await;
    is_told(fence.commit(never_entered, &ledger()).await);

    let mut taken_back = begun(&mut client).await;
    taken_back.query_drop("SAVEPOINT earlier").await.unwrap();
    fence
        .enter(&mut taken_back, &ledger(), &term("nightly", 5))
        .await
        .unwrap();
    taken_back
        .query_drop("ROLLBACK TO SAVEPOINT earlier")
        .await
        .unwrap();
    taken_back.query_drop(ADD).await.unwrap();
    is_told(fence.commit(taken_back, &ledger()).await);
    assert_eq!(cents(&scratch).await, 0);

    let mut kept = begun(&mut client).await;
    // Twice, as where two parts of a program do so.
    for _ in 0..2 {
        fence
            .enter(&mut kept, &ledger(), &term("nightly", 5))
            .await
            .unwrap();
    }
    kept.query_drop("SAVEPOINT of_its_own").await.unwrap();
    kept.query_drop(ADD).await.unwrap();
    kept.query_drop("ROLLBACK TO SAVEPOINT of_its_own").await.unwrap();
    kept.query_drop(ADD).await.unwrap();
    kept.query_drop("RELEASE SAVEPOINT of_its_own").await.unwrap();
    fence.commit(kept, &ledger()).await.unwrap();
    assert_eq!(cents(&scratch).await, 2);
    // It has ended, and keeps no claim waiting.
    let claimed = fence.claim(&ledger(), &term("nightly", 9)).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from: Some(token(5)) }));
}

/// The lock is kept in both, but the server knows the savepoint of the entry no more: a nested block of a
/// framework that ends well, and one that enters once more and fails.
#[tokio::test]
async fn entry_that_an_earlier_savepoint_takes_along_at_its_end_is_told_with_the_way_out_and_nothing_is_committed()
 {
    let (scratch, fence) = accounts().await;
    let mut client = scratch.client().await;
    for (enters_before, end) in [(false, "RELEASE SAVEPOINT"), (true, "ROLLBACK TO SAVEPOINT")] {
        let mut transaction = begun(&mut client).await;
        if enters_before {
            fence
                .enter(&mut transaction, &ledger(), &term("nightly", 5))
                .await
                .unwrap();
        }
        transaction.query_drop("SAVEPOINT nested").await.unwrap();
        fence
            .enter(&mut transaction, &ledger(), &term("nightly", 5))
            .await
            .unwrap();
        transaction.query_drop(ADD).await.unwrap();
        transaction.query_drop(format!("{end} nested")).await.unwrap();
        transaction.query_drop(ADD).await.unwrap();
        let message = is_told(fence.commit(transaction, &ledger()).await);
        assert!(message.contains("enter before any savepoint"), "{message}");
        assert_eq!(cents(&scratch).await, 0, "{end}");
    }
}
