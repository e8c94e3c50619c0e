//! The statements of the short way by themselves, whatever session and server they meet: beside them, each
//! session is looked at before it has any.
use crate::common::{Scratch, family, give_back, next, request, row_locked, seconds, take};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Row, Statement};
use tenure_conformance::wire::bounded;
use tenure_testkit::{Mariadb, SqlFamily};

/// Both, as the store prepares them.
struct Statements {
    take: Statement,
    vacate: Statement,
}

impl Statements {
    /// None in MySQL, which does not know them.
    async fn of(client: &mut Conn) -> Option<Self> {
        let [take, vacate] = tenure_mysql::short_way();
        match family() {
            SqlFamily::Mariadb => Some(Self {
                take: client.prep(take).await.unwrap(),
                vacate: client.prep(vacate).await.unwrap(),
            }),
            SqlFamily::Mysql => {
                assert!(client.prep(take).await.is_err());
                assert!(client.prep(vacate).await.is_err());
                None
            }
        }
    }

    async fn take(
        &self,
        client: &mut Conn,
        lease: &str,
        incarnation: &str,
        attempt: u32,
    ) -> Result<i64, u16> {
        let asked = (lease, "me", incarnation, attempt, 60_000, 60_000, "");
        let taken = bounded("a take", client.exec_first::<Row, _, _>(&self.take, asked)).await;
        match taken {
            Ok(row) => Ok(row.and_then(|row| row.get(0)).expect("a row")),
            Err(error) => Err(code(&error)),
        }
    }

    async fn vacate(&self, client: &mut Conn, lease: &str, token: i64, attempt: u32) -> Result<u64, u16> {
        let asked = (lease, MINE, token, attempt);
        match bounded("a release", client.exec_drop(&self.vacate, asked)).await {
            Ok(()) => Ok(client.affected_rows()),
            Err(error) => Err(code(&error)),
        }
    }
}

fn code(error: &Error) -> u16 {
    match error {
        Error::Server(answer) => answer.code,
        other => panic!("{other:?}"),
    }
}

/// All that is there, with what triggers have written.
async fn everything(client: &mut Conn) -> String {
    let leases: Vec<Row> = client
        .query("SELECT * FROM tenure_leases ORDER BY name")
        .await
        .unwrap();
    let heard: Vec<Row> = client.query("SELECT * FROM heard").await.unwrap();
    format!("{leases:?} {heard:?}")
}

/// A null where there may be none is an error also where sessions are not strict, check no constraints, and
/// have triggers run before it is found: what a statement cannot prove it does not write.
#[tokio::test]
async fn what_a_statement_of_the_short_way_cannot_prove_it_does_not_write_in_any_session() {
    let scratch = Scratch::new().await;
    let mut looks = scratch.client().await;
    let mut client = scratch.client().await;
    let Some(statements) = Statements::of(&mut client).await else {
        return;
    };
    let held = statements.take(&mut client, "held", MINE, 2).await.unwrap();
    let vacant = statements.take(&mut client, "vacant", MINE, 2).await.unwrap();
    assert_eq!(statements.vacate(&mut client, "vacant", vacant, 2).await, Ok(1));
    scratch
        .sql("CREATE TABLE heard (what VARCHAR(20)) ENGINE = InnoDB")
        .await;
    for triggers in [false, true] {
        if triggers {
            for moment in ["BEFORE INSERT", "AFTER INSERT", "BEFORE UPDATE", "AFTER UPDATE"] {
                let trigger = format!(
                    "CREATE TRIGGER {} {moment} ON tenure_leases FOR EACH ROW INSERT INTO heard VALUES ('{moment}')",
                    moment.replace(' ', "_")
                );
                scratch.sql(&trigger).await;
            }
        }
        for settings in [
            "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'",
            "SET SESSION sql_mode = '', check_constraint_checks = 0",
            "SET SESSION sql_mode = 'ANSI,SIMULTANEOUS_ASSIGNMENT'",
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        ] {
            client.query_drop(settings).await.unwrap();
            // Once more, as a mode may count when a statement is prepared.
            let new = Statements::of(&mut client).await.unwrap();
            for statements in [&statements, &new] {
                let before = everything(&mut looks).await;
                // Of another, of the same attempt, of an earlier one; late, after it was given back.
                for (lease, incarnation, attempt) in [
                    ("held", OTHER, 3),
                    ("held", MINE, 2),
                    ("held", MINE, 1),
                    ("vacant", MINE, 2),
                    ("vacant", MINE, 1),
                ] {
                    let taken = statements.take(&mut client, lease, incarnation, attempt).await;
                    assert_eq!(taken, Err(NULL), "{lease}, {attempt}: {settings}, {triggers}");
                }
                for (lease, token, attempt) in
                    [("held", held + 1, 2), ("held", held, 1), ("vacant", vacant, 2)]
                {
                    let vacated = statements.vacate(&mut client, lease, token, attempt).await;
                    assert_eq!(vacated, Ok(0), "{lease}, {attempt}: {settings}, {triggers}");
                }
                // In a transaction, what is answered would not be committed.
                for begin in ["START TRANSACTION", "SET SESSION autocommit = 0"] {
                    client.query_drop(begin).await.unwrap();
                    for lease in ["new", "vacant"] {
                        let taken = statements.take(&mut client, lease, OTHER, 1).await;
                        assert_eq!(taken, Err(NULL), "{lease}: {begin}, {settings}, {triggers}");
                    }
                    let vacated = statements.vacate(&mut client, "held", held, 2).await;
                    assert_eq!(vacated, Ok(0), "{begin}, {settings}, {triggers}");
                    client
                        .query_drop("COMMIT; SET SESSION autocommit = 1")
                        .await
                        .unwrap();
                }
                assert_eq!(everything(&mut looks).await, before, "{settings}, {triggers}");
            }
        }
    }
    assert!(statements.take(&mut client, "vacant", OTHER, 1).await.unwrap() > vacant);
    assert!(statements.take(&mut client, "held", MINE, 3).await.unwrap() > held);
}

/// Neither for a row nor for a table nor for a server that is backed up: each is what the procedures wait
/// for. Nothing of it stays in the session.
#[tokio::test]
async fn statements_of_the_short_way_wait_for_nothing() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let (mut client, mut other) = (scratch.client().await, scratch.client().await);
    let Some(statements) = Statements::of(&mut client).await else {
        return;
    };
    let look = "SELECT @@innodb_lock_wait_timeout, @@lock_wait_timeout";
    let waits: Option<(u64, u64)> = client.query_first(look).await.unwrap();
    let token = statements.take(&mut client, "job", MINE, 1).await.unwrap();
    let vacated = async |client: &mut Conn| statements.vacate(client, "job", token, 1).await;
    let taken = async |client: &mut Conn| statements.take(client, "job", OTHER, 1).await;
    let locked = row_locked(&mut other, "job").await;
    assert_eq!(
        (vacated(&mut client).await, taken(&mut client).await),
        (Err(BUSY), Err(BUSY))
    );
    locked.rollback().await.unwrap();
    for lock in ["LOCK TABLES tenure_leases WRITE", "FLUSH TABLES WITH READ LOCK"] {
        other.query_drop(lock).await.unwrap();
        let answers = (vacated(&mut client).await, taken(&mut client).await);
        assert_eq!(answers, (Err(BUSY), Err(BUSY)), "{lock}");
        other.query_drop("UNLOCK TABLES").await.unwrap();
    }
    let after: Option<(u64, u64)> = client.query_first(look).await.unwrap();
    assert_eq!(after, waits);
    assert_eq!(vacated(&mut client).await, Ok(1));
    assert!(taken(&mut client).await.unwrap() > token);
}

/// A replica takes no writes, and would find so where the statement was logged: what is logged is the row.
#[tokio::test]
async fn what_the_short_way_writes_is_logged_as_rows_where_the_log_is_mixed() {
    let server = Mariadb::with_settings(&["log-bin=log", "server-id=1", "binlog-format=MIXED"])
        .await
        .unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let mut client = scratch.client().await;
    if Statements::of(&mut client).await.is_none() {
        return;
    }
    let store = scratch.store().await;
    for procedure in ["acquire", "release"] {
        scratch.sql(&format!("DROP PROCEDURE tenure_{procedure}_1")).await;
    }
    client.query_drop("FLUSH BINARY LOGS").await.unwrap();
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    give_back(&store, &asked, token).await;
    take(&store, &next(&asked)).await;
    let row: Option<Row> = client.query_first("SHOW MASTER STATUS").await.unwrap();
    let log: String = row.unwrap().get(0).unwrap();
    let events: Vec<Row> = client
        .query(format!("SHOW BINLOG EVENTS IN '{log}'"))
        .await
        .unwrap();
    let kinds: Vec<String> = events.iter().map(|event| event.get(2).unwrap()).collect();
    let of_rows = |kind: &&String| kind.contains("_rows_v");
    assert_eq!(kinds.iter().filter(of_rows).count(), 3, "{kinds:?}");
    assert!(!kinds.iter().any(|kind| kind == "Query"), "{kinds:?}");
}

const MINE: &str = "0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210";
/// What a server answers to a null where there may be none, and to who does not wait.
const NULL: u16 = 1048;
const BUSY: u16 = 1205;
