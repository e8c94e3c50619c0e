//! Procedures of other versions of Tenure, or none: what is found out about them, and who replaces what.
use crate::common::{Scratch, family, renewal, replacing, request, seconds, take};
use crate::fence::{fenced, ledger, term, write};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Error, IsolationLevel, TxOpts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_conformance::wire::bounded;
use tenure_core::{
    Certainty, Fault, Fence, FenceError, Finding, LeaseStore, ResourceName, StoreError, Verdict,
};
use tenure_mysql::MysqlStore;
use tenure_testkit::{Mariadb, SqlFamily};
use tokio::task::JoinSet;

/// How often procedures are replaced under those who use them.
const ROUNDS: u32 = 10;

async fn found(store: &MysqlStore, subject: &str) -> Finding {
    let findings = store.examine().await.unwrap();
    let found = findings.into_iter().find(|finding| finding.subject == subject);
    found.unwrap()
}

/// The statement that puts another body in a procedure's place, which does the same.
pub(super) fn rewriting(procedure: &str) -> String {
    let printed = MysqlStore::init_statements("mysql://h/d").unwrap();
    let head = format!("CREATE PROCEDURE IF NOT EXISTS tenure_{procedure}_1");
    let (_, from) = printed.split_once(&head).unwrap();
    let text = from.split("\n$$").next().unwrap().trim_end();
    let body = text.strip_suffix("END").unwrap();
    replacing(&format!(
        "CREATE OR REPLACE PROCEDURE tenure_{procedure}_1{body}DO 0; END"
    ))
}

/// The next set-up, once there is another procedure: MariaDB replaces it; MySQL cannot, and says the way out.
pub(super) async fn set_up_again(scratch: &Scratch, others: &[&str]) {
    let done = MysqlStore::init(&scratch.url()).await;
    if family() == SqlFamily::Mariadb {
        return done.unwrap();
    }
    cannot_replace(&done.unwrap_err(), others);
    for other in others {
        scratch.sql(&format!("DROP PROCEDURE tenure_{other}_1")).await;
    }
    MysqlStore::init(&scratch.url()).await.unwrap();
}

fn cannot_replace(error: &StoreError, others: &[&str]) {
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unsupported, Certainty::NotApplied),
        "{error}"
    );
    for other in others {
        assert!(error.message.contains(&format!("tenure_{other}_1")), "{error}");
    }
    assert!(error.message.contains("DROP PROCEDURE"), "{error}");
}

async fn rewritten(scratch: &Scratch, procedure: &str) {
    scratch.sql(&rewriting(procedure)).await;
}

/// What an earlier Tenure of the same version has set up works, and is told of by name until it is set up
/// again; who had been granted a procedure by its name still is.
#[tokio::test]
async fn procedure_that_is_another_is_told_of_and_replaced_by_the_next_set_up() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let database = &scratch.database;
    scratch
        .sql(&format!(
            "CREATE USER service IDENTIFIED BY 'x'; GRANT SELECT ON {database}.tenure_setup TO service; \
             GRANT SELECT, INSERT, UPDATE ON {database}.tenure_leases TO service; \
             GRANT EXECUTE ON PROCEDURE {database}.tenure_acquire_1 TO service; \
             GRANT EXECUTE ON PROCEDURE {database}.tenure_renew_1 TO service"
        ))
        .await;
    let store = scratch.store().await;
    let finding = found(&store, "set-up").await;
    assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
    for procedure in ["claim", "acquire", "admit"] {
        rewritten(&scratch, procedure).await;
        let finding = found(&store, "set-up").await;
        assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
        assert!(
            finding.detail.contains(&format!("tenure_{procedure}_1")),
            "{finding:?}"
        );
        assert!(finding.repair.unwrap().contains("tenure store init"));
    }
    set_up_again(&scratch, &["acquire", "claim", "admit"]).await;
    let finding = found(&store, "set-up").await;
    assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
    if family() == SqlFamily::Mysql {
        // What was dropped took its grants along, as the way out says.
        let again = format!("GRANT EXECUTE ON PROCEDURE {database}.tenure_acquire_1 TO service");
        scratch.sql(&again).await;
    }
    let service = MysqlStore::connect(&server.uri_as("service", "x", database))
        .await
        .unwrap();
    take(&service, &request("job", "a", seconds(60))).await;
    // Whoever may not read them says so, and what he may not call.
    let finding = found(&service, "set-up").await;
    assert!(finding.detail.contains("tenure_claim_1"), "{finding:?}");
    assert!(!finding.detail.contains("tenure_renew_1"), "{finding:?}");
    scratch
        .sql(&format!("GRANT EXECUTE ON {database}.* TO service"))
        .await;
    let service = MysqlStore::connect(&server.uri_as("service", "x", database))
        .await
        .unwrap();
    let finding = found(&service, "set-up").await;
    assert!(finding.detail.contains("owner alone"), "{finding:?}");
}

/// What the command-line client has made of the printed statements, without their comments, is the same.
#[tokio::test]
async fn procedure_without_its_comments_is_the_same() {
    let scratch = Scratch::new().await;
    let plain = |line: &str| line.split("-- ").next().unwrap().to_owned();
    let lines: Vec<String> = rewriting("claim").lines().map(plain).collect();
    let statement = lines.join("\n").replace("DO 0; END", "END");
    assert!(!statement.contains("-- "), "{statement}");
    scratch.sql(&statement).await;
    let finding = found(&scratch.store().await, "set-up").await;
    assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
}

/// A procedure that is missing for a moment would end campaigns: nobody who calls it meets one. Where the
/// server can only drop it and make it anew, nothing is replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn procedures_are_replaced_under_those_who_call_them() {
    let scratch = Scratch::new().await;
    rewritten(&scratch, "renew").await;
    rewritten(&scratch, "acquire").await;
    let over = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for caller in 0..4 {
        let (store, over) = (scratch.store().await, Arc::clone(&over));
        callers.spawn(async move {
            let asked = request(&format!("job {caller}"), "a", seconds(60));
            let token = take(&store, &asked).await.token;
            let mut calls = 0_u32;
            while !over.load(Ordering::Relaxed) {
                let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
                let acquired = store.acquire(&asked).await;
                renewed.map(drop).and(acquired.map(drop))?;
                calls += 1;
            }
            Ok::<u32, StoreError>(calls)
        });
    }
    for _round in 0..ROUNDS {
        match family() {
            SqlFamily::Mariadb => {
                rewritten(&scratch, "renew").await;
                rewritten(&scratch, "acquire").await;
                MysqlStore::init(&scratch.url()).await.unwrap();
            }
            SqlFamily::Mysql => {
                let refused = MysqlStore::init(&scratch.url()).await.unwrap_err();
                cannot_replace(&refused, &["renew", "acquire"]);
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    for called in callers.join_all().await {
        assert!(called.unwrap() > 0);
    }
}

/// The procedure of the triggers is in use until a transaction that has written ends: a set-up is told so in
/// time, and done again it is made.
#[tokio::test]
async fn set_up_that_meets_an_open_write_to_a_guarded_table_gives_way() {
    let (scratch, fence) = fenced().await;
    fence.guard("account", &ledger()).await.unwrap();
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let mut client = scratch.client().await;
    let mut open = client.start_transaction(TxOpts::default()).await.unwrap();
    let term = term("nightly", 5);
    fence.enter(&mut open, &ledger(), &term).await.unwrap();
    open.query_drop("UPDATE account SET cents = cents + 1")
        .await
        .unwrap();
    // Where there is nothing to replace, nobody is waited for.
    MysqlStore::init(&scratch.url()).await.unwrap();
    open.commit().await.unwrap();
    rewritten(&scratch, "admit").await;
    let mut open = client.start_transaction(TxOpts::default()).await.unwrap();
    fence.enter(&mut open, &ledger(), &term).await.unwrap();
    open.query_drop("UPDATE account SET cents = cents + 1")
        .await
        .unwrap();
    let error = MysqlStore::init(&scratch.url()).await.unwrap_err();
    match family() {
        SqlFamily::Mariadb => assert_eq!(error.fault, Fault::Busy, "{error}"),
        SqlFamily::Mysql => cannot_replace(&error, &["admit"]),
    }
    open.query_drop("UPDATE account SET cents = cents + 1")
        .await
        .unwrap();
    open.commit().await.unwrap();
    set_up_again(&scratch, &["admit"]).await;
    let finding = found(&scratch.store().await, "set-up").await;
    assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
}

/// Neither the printed set-up nor a guard waits behind an open transaction for as long as the server would,
/// with everybody else behind it.
#[tokio::test]
async fn printed_set_up_and_guard_that_meet_an_open_write_give_way() {
    let (scratch, fence) = fenced().await;
    fence.guard("account", &ledger()).await.unwrap();
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let (mut client, mut owner) = (scratch.client().await, scratch.client().await);
    let mut open = client.start_transaction(TxOpts::default()).await.unwrap();
    fence
        .enter(&mut open, &ledger(), &term("nightly", 5))
        .await
        .unwrap();
    open.query_drop("UPDATE account SET cents = cents + 1")
        .await
        .unwrap();
    let printed = MysqlStore::init_statements("mysql://h/d").unwrap();
    let printing = async {
        for statement in printed.split_once("DELIMITER $$\n").unwrap().1.split("\n$$\n") {
            if !statement.starts_with("DELIMITER") {
                owner.query_drop(statement).await?;
            }
        }
        Ok::<(), Error>(())
    };
    let met = bounded("the printed set-up", printing).await;
    assert!(
        matches!(&met, Err(Error::Server(answer)) if answer.code == 1205),
        "{met:?}"
    );
    let other = ResourceName::new("another").unwrap();
    for met in [
        fence.guard("account", &other).await.map(drop),
        fence.unguard("account").await,
    ] {
        let told = |error: &StoreError| (error.fault, error.certainty);
        assert!(
            matches!(&met, Err(FenceError::Store(error)) if told(error) == (Fault::Busy, Certainty::NotApplied)),
            "{met:?}"
        );
    }
    open.commit().await.unwrap();
    fence.guard("account", &other).await.unwrap();
    fence.unguard("account").await.unwrap();
}

/// As after a dump without its procedures was restored: tables and privileges are there, and no lease can be
/// renewed.
#[tokio::test]
async fn tables_without_their_procedures_are_no_good() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    assert_eq!(found(&store, "privileges").await.verdict, Verdict::Good);
    for procedure in [
        "acquire", "renew", "release", "ask", "wait", "claim", "bump", "enter", "admit",
    ] {
        scratch.sql(&format!("DROP PROCEDURE tenure_{procedure}_1")).await;
    }
    for store in [store, scratch.store().await] {
        let finding = found(&store, "privileges").await;
        assert_eq!(finding.verdict, Verdict::Bad, "{finding:?}");
        assert!(finding.repair.unwrap().contains("tenure store init"));
        let finding = found(&store, "set-up").await;
        assert!(finding.detail.contains("tenure_claim_1"), "{finding:?}");
    }
    MysqlStore::init(&scratch.url()).await.unwrap();
    let store = scratch.store().await;
    for subject in ["privileges", "set-up", "watch"] {
        let finding = found(&store, subject).await;
        assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
    }
}

/// As a set-up of a later Tenure does under those who write.
#[tokio::test]
async fn transaction_that_began_before_a_set_up_has_mended_the_marks_is_told_to_begin_again() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let mut client = scratch.client().await;
    let mut options = TxOpts::default();
    options
        .with_consistent_snapshot(true)
        .with_isolation_level(IsolationLevel::RepeatableRead);
    let mut transaction = client.start_transaction(options).await.unwrap();
    scratch
        .sql("ALTER TABLE tenure_fences FORCE, ALGORITHM=COPY")
        .await;
    let entered = fence
        .enter(&mut transaction, &ledger(), &term("nightly", 5))
        .await;
    let Err(FenceError::Store(error)) = entered else {
        panic!("it sees the marks as they were before: {entered:?}");
    };
    let told = (error.fault, error.certainty);
    assert_eq!(told, (Fault::Busy, Certainty::NotApplied), "{error}");
    transaction.rollback().await.unwrap();
    write(&mut client, &fence, &term("nightly", 5)).await.unwrap();
}
