//! A statement that somebody kills: what it had begun is over when it is answered, and nothing of it is
//! handed on.
use crate::common::{PATIENCE, Scratch, family, renewal, request, seconds, take};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, TxOpts};
use std::cell::Cell;
use std::time::{Duration, Instant};
use tenure_conformance::wire::bounded;
use tenure_core::{Certainty, Fault, LeaseStore, Renew, Renewed, StoreError};
use tenure_mysql::MysqlStore;
use tenure_testkit::SqlFamily;

/// Kills the statement that waits for a row in this database. Answers whose it was; `None` if it was `over`
/// before it was found.
async fn kill_who_waits(client: &mut Conn, over: &Cell<bool>) -> Option<u64> {
    // A statement of a procedure is shown as itself.
    let for_a_while = match family() {
        SqlFamily::Mariadb => "time_ms > 50",
        SqlFamily::Mysql => "time >= 1",
    };
    let waiting = format!(
        "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID() \
         AND command = 'Query' AND info LIKE '%UPDATE%' AND {for_a_while}"
    );
    while !over.get() {
        if let Some(id) = client.query_first::<u64, _>(&waiting).await.unwrap() {
            client.query_drop(format!("KILL QUERY {id}")).await.unwrap();
            return Some(id);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    None
}

/// Has a batch killed that waits for a row. Answers with what it was told, and whose it was; not, if it was
/// given up before.
async fn killed(
    store: &MysqlStore,
    renewals: &[Renew],
    killer: &mut Conn,
) -> Option<(Vec<Result<Renewed, StoreError>>, u64)> {
    let over = Cell::new(false);
    let batch = async {
        let answers = bounded("a killed batch", store.renew(renewals)).await;
        over.set(true);
        answers
    };
    let (answers, id) = tokio::join!(batch, kill_who_waits(killer, &over));
    let is_given_up = |answer: &Result<_, StoreError>| matches!(answer, Err(error) if error.fault == Fault::Busy && error.certainty == Certainty::NotApplied);
    if answers.iter().all(is_given_up) {
        return None;
    }
    Some((answers, id.expect("it was answered, and nobody has killed it")))
}

/// How often a batch may be given up before a slow machine has found it.
const ROUNDS_MAX: u32 = 5;

/// A procedure that is killed may run none of its handlers, by the server and by the moment: its transaction
/// stays open then, and its session's settings changed. Whether they have run, nobody is told; so its
/// connection is not used again.
#[tokio::test]
async fn killed_renewal_keeps_no_row_locked_and_the_next_one_extends() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut renewals = Vec::new();
    for label in ["one", "two"] {
        let asked = request(label, "holder", seconds(120));
        renewals.push(renewal(&asked, take(&store, &asked).await.token));
    }
    // A batch passes by rows of leases that somebody keeps locked; what a trigger wants it waits for, with
    // its own rows locked.
    scratch
        .sql(
            "CREATE TABLE journal (line INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO journal VALUES (1); \
             CREATE TRIGGER noted BEFORE UPDATE ON tenure_leases FOR EACH ROW UPDATE journal SET line = line",
        )
        .await;
    let mut client = scratch.client().await;
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    transaction
        .query_drop("SELECT line FROM journal FOR UPDATE")
        .await
        .unwrap();
    let mut killer = scratch.client().await;
    let mut found = None;
    for _round in 0..ROUNDS_MAX {
        found = killed(&store, &renewals, &mut killer).await;
        if found.is_some() {
            break;
        }
    }
    let (answers, id) = found.expect("one is killed before it is given up");
    for answer in &answers {
        let error = answer.as_ref().unwrap_err();
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::TimedOut, Certainty::Unknown),
            "{error}"
        );
    }
    let deadline = Instant::now() + PATIENCE;
    let there = format!("SELECT id FROM information_schema.processlist WHERE id = {id}");
    while killer.query_first::<u64, _>(&there).await.unwrap().is_some() {
        assert!(Instant::now() < deadline, "its connection is kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    killer
        .query_drop(
            "SET SESSION innodb_lock_wait_timeout = 10; SELECT 1 FROM tenure_leases WHERE name = 'one' FOR UPDATE",
        )
        .await
        .unwrap();
    transaction.rollback().await.unwrap();
    for renewed in store.renew(&renewals).await {
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    }
}
