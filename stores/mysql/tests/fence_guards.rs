//! Tables that refuse whoever shows no term.
use crate::common::Scratch;
use crate::fence::{ADD, ROUNDS_MAX, cents, fenced, ledger, term, token, waits, write};
use mysql_async::TxOpts;
use mysql_async::prelude::Queryable as _;
use std::time::Duration;
use tenure_core::{Claimed, Fence, FenceError, Leases, ResourceName};
use tenure_mysql::MysqlFence;
use tenure_testkit::in_one_of;

/// The triggers ask who has entered, whatever the statement; and the refusal is told as the fence's.
#[tokio::test]
async fn guarded_table_takes_writes_only_from_the_term_that_claimed() {
    let (scratch, fence) = fenced().await;
    fence.guard("account", &ledger()).await.unwrap();
    fence.guard("account", &ledger()).await.unwrap();
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let mut entered = scratch.client().await;
    write(&mut entered, &fence, &term("nightly", 5)).await.unwrap();
    for statement in [
        "INSERT INTO account VALUES (2, 0)",
        "REPLACE INTO account VALUES (1, 7)",
        "INSERT INTO account VALUES (1, 0) ON DUPLICATE KEY UPDATE cents = 7",
        "UPDATE account SET cents = 7",
        "DELETE FROM account",
    ] {
        let mut client = scratch.client().await;
        let error = client.query_drop(statement).await.unwrap_err();
        let refusal = fence
            .refusal(&ledger(), &term("nightly", 5), &error)
            .await
            .unwrap();
        assert!(
            matches!(refusal, Some(FenceError::Unclaimed { .. })),
            "{statement}: {error:?}"
        );
        // Any program may show its term, and an old one is refused all the same.
        for (shown, number) in [
            ("5 nightly", 5),
            ("4 nightly", 4),
            ("5 hourly", 0),
            ("99999999999999999999 nightly", 0),
            ("9999999999999999999 nightly", 0),
            ("nightly", 0),
        ] {
            let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
            transaction
                .exec_drop("SET @tenure_term = ?", (shown,))
                .await
                .unwrap();
            let written = transaction.query_drop(statement).await;
            transaction.rollback().await.unwrap();
            match number {
                5 => written.unwrap(),
                4 => {
                    let error = written.unwrap_err();
                    let refusal = fence
                        .refusal(&ledger(), &term("nightly", 4), &error)
                        .await
                        .unwrap();
                    assert!(
                        matches!(refusal, Some(FenceError::Stale { .. })),
                        "{shown}: {error:?}"
                    );
                }
                _ => drop(written.unwrap_err()),
            }
        }
    }
    assert_eq!(cents(&scratch).await, 1);
    // What its session still shows from before does not help a term that is over.
    fence.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    let error = entered
        .query_drop("UPDATE account SET cents = 7")
        .await
        .unwrap_err();
    let refusal = fence
        .refusal(&ledger(), &term("nightly", 5), &error)
        .await
        .unwrap();
    assert!(matches!(refusal, Some(FenceError::Stale { .. })), "{error:?}");
    // And an entry that was refused leaves nothing shown.
    let mut transaction = entered.start_transaction(TxOpts::default()).await.unwrap();
    fence
        .enter(&mut transaction, &ledger(), &term("nightly", 9))
        .await
        .unwrap();
    fence
        .enter(&mut transaction, &ledger(), &term("nightly", 8))
        .await
        .unwrap_err();
    transaction.query_drop(ADD).await.unwrap_err();
    transaction.rollback().await.unwrap();
    fence.unguard("account").await.unwrap();
    entered.query_drop("UPDATE account SET cents = 7").await.unwrap();
    let missing = fence.guard("no_such_table", &ledger()).await.unwrap_err();
    assert!(missing.to_string().contains("no_such_table"), "{missing}");
}

/// A guarded write holds the mark as an entered transaction does: a claim waits for it.
#[tokio::test]
async fn claim_waits_for_a_guarded_write_and_another_resource_takes_over_without_a_gap() {
    in_one_of(
        ROUNDS_MAX,
        "the time of each claim was over before the write that it waited for",
        claim_waits_for_a_guarded_write,
    )
    .await;
}

/// Not, on a machine so slow that the claim's time was over before.
async fn claim_waits_for_a_guarded_write() -> bool {
    let (scratch, fence) = fenced().await;
    let other = ResourceName::new("other").unwrap();
    let name = scratch.database.clone();
    fence.guard("account", &other).await.unwrap();
    fence.guard(&format!("{name}.account"), &ledger()).await.unwrap();
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let mut client = scratch.client().await;
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    transaction
        .query_drop("SET @tenure_term = '5 nightly'")
        .await
        .unwrap();
    transaction.query_drop(ADD).await.unwrap();
    let claim = tokio::spawn({
        let fence = fence.clone();
        async move { fence.claim(&ledger(), &term("nightly", 9)).await }
    });
    let mut waited = waits(&claim, &scratch).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    waited &= !claim.is_finished();
    transaction.commit().await.unwrap();
    let claimed = claim.await.unwrap();
    if matches!(claimed, Err(FenceError::Store(_))) {
        return false;
    }
    assert!(waited, "a claim did not wait for a guarded write");
    assert_eq!(claimed, Ok(Claimed::Raised { from: Some(token(5)) }));
    assert_eq!(cents(&scratch).await, 1);
    true
}

/// The triggers of a table go with it when it gets another name, and keep theirs.
#[tokio::test]
async fn renamed_table_of_mysql_stays_guarded_and_another_takes_its_name_and_guard() {
    let (scratch, fence) = fenced().await;
    let mut client = scratch.client().await;
    for year in [2024, 2025] {
        fence.guard("account", &ledger()).await.unwrap();
        scratch
            .sql(&format!(
                "RENAME TABLE account TO account_{year}; CREATE TABLE account LIKE account_{year}"
            ))
            .await;
    }
    fence.guard("account", &ledger()).await.unwrap();
    let insert = |table: &str| format!("INSERT INTO {table} VALUES (2, 0)");
    for table in ["account", "account_2024", "account_2025"] {
        client.query_drop(insert(table)).await.expect_err(table);
        // Again and of another resource, it is still guarded once.
        fence.guard(table, &ledger()).await.unwrap();
        fence
            .guard(table, &ResourceName::new("other").unwrap())
            .await
            .unwrap();
        client.query_drop(insert(table)).await.expect_err(table);
        fence.unguard(table).await.unwrap();
        client.query_drop(insert(table)).await.expect(table);
    }
}

/// A table may be in another database than the marks, and the marks may move.
#[tokio::test]
async fn guard_of_mysql_asks_the_marks_of_the_fence_that_has_made_it_last() {
    let (scratch, fence) = fenced().await;
    let elsewhere = Scratch::new().await;
    let moved = MysqlFence::connect(&elsewhere.url(), Leases::Here).await.unwrap();
    let table = format!("{}.account", scratch.database);
    for fence in [&fence, &moved] {
        fence.guard(&table, &ledger()).await.unwrap();
    }
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    moved.claim(&ledger(), &term("nightly", 9)).await.unwrap();
    let mut client = scratch.client().await;
    client.query_drop("SET @tenure_term = '5 nightly'").await.unwrap();
    client.query_drop(ADD).await.unwrap_err();
    client.query_drop("SET @tenure_term = '9 nightly'").await.unwrap();
    client.query_drop(ADD).await.unwrap();
}

/// A pool may hand the connection on as it is: whoever has it next is not to write by what somebody else has
/// entered with.
#[tokio::test]
async fn session_shows_no_term_after_the_fence_has_committed_in_mysql() {
    let (scratch, fence) = fenced().await;
    fence.guard("account", &ledger()).await.unwrap();
    let term = term("nightly", 5);
    fence.claim(&ledger(), &term).await.unwrap();
    let mut client = scratch.client().await;
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    fence.enter(&mut transaction, &ledger(), &term).await.unwrap();
    transaction.query_drop(ADD).await.unwrap();
    fence.commit(transaction, &ledger()).await.unwrap();
    let error = client.query_drop(ADD).await.unwrap_err();
    let refusal = fence.refusal(&ledger(), &term, &error).await.unwrap();
    assert!(matches!(refusal, Some(FenceError::Unclaimed { .. })), "{error:?}");
    assert_eq!(cents(&scratch).await, 1);
}

/// A trigger of the user's own that calls the procedure is no guard's, also beside one: it stays, whoever
/// guards and unguards.
#[tokio::test]
async fn trigger_of_the_users_own_that_asks_for_the_term_stays_in_mysql() {
    let (scratch, fence) = fenced().await;
    scratch.sql("CREATE TABLE audit (id INT PRIMARY KEY)").await;
    let mut client = scratch.client().await;
    client
        .query_drop(
            "CREATE TRIGGER tenure_insert_audit BEFORE INSERT ON account FOR EACH ROW \
             BEGIN INSERT INTO audit VALUES (NEW.id); IF NEW.cents > 100 THEN CALL tenure_admit_1('ledger'); END IF; END",
        )
        .await
        .unwrap();
    let insert = |id: u32, cents: u32| format!("INSERT INTO account VALUES ({id}, {cents})");
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    for id in [2, 3] {
        fence.guard("account", &ledger()).await.unwrap();
        client.query_drop(insert(id, 7)).await.expect_err("it is guarded");
        fence.unguard("account").await.unwrap();
        client.query_drop(insert(id, 7)).await.expect("it is not guarded");
        client
            .query_drop(insert(99, 101))
            .await
            .expect_err("the user's own");
    }
    let audited: Vec<u32> = client.query("SELECT id FROM audit ORDER BY id").await.unwrap();
    assert_eq!(audited, [2, 3]);
}

/// Two teams may mean one table: the job of the first would learn of it at its next write.
#[tokio::test]
async fn guard_that_replaces_another_resources_says_which_in_mysql() {
    let (_scratch, fence) = fenced().await;
    let quoted = ResourceName::new("it's \\ a \"ledger\" of X'6c'").unwrap();
    for (resource, replaced) in [
        (&ledger(), None),
        (&ledger(), None),
        (&quoted, Some(ledger())),
        (&ledger(), Some(quoted.clone())),
    ] {
        assert_eq!(fence.guard("account", resource).await, Ok(replaced));
    }
    fence.unguard("account").await.unwrap();
    assert_eq!(fence.guard("account", &quoted).await, Ok(None));
}
