//! A table that refuses stale tokens by its triggers, written to by whoever knows nothing of Tenure.
use crate::common::Scratch;
use rusqlite::{Connection, MAIN_DB};
use tenure_core::{Bump, Fault, Fence, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_sqlite::{FencedTable, SqliteFence};

fn ledger() -> ResourceName {
    ResourceName::new("it's a \"ledger\"").unwrap()
}

fn term(number: u64) -> Term {
    Term::new(
        LeaseName::new("nightly").unwrap(),
        FencingToken::new(number).unwrap(),
    )
}

/// Two accounts of term 5 in a table with a name and a column that need quoting, and the mark at 9.
async fn succeeded() -> (Scratch, SqliteFence, FencedTable, Connection) {
    let scratch = Scratch::new();
    let connection = scratch.raw();
    connection
        .execute_batch(
            "CREATE TABLE \"a \"\"b\" (id INTEGER PRIMARY KEY, cents INTEGER, \"the \"\"token\" INTEGER)",
        )
        .unwrap();
    SqliteFence::install(&connection).unwrap();
    let table = FencedTable::new("a \"b", &ledger()).column("the \"token");
    table.install(&connection).unwrap();
    table.install(&connection).unwrap();
    let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    fence.claim(&ledger(), &term(5)).await.unwrap();
    connection
        .execute("INSERT INTO \"a \"\"b\" VALUES (1, 100, 5), (2, 100, 5)", [])
        .unwrap();
    fence.claim(&ledger(), &term(9)).await.unwrap();
    (scratch, fence, table, connection)
}

/// A file with these tables, of which that of accounts is guarded, and its fence.
fn guarded(tables: &str) -> (Scratch, Connection, SqliteFence) {
    let scratch = Scratch::new();
    let connection = scratch.raw();
    connection.execute_batch(tables).unwrap();
    SqliteFence::install(&connection).unwrap();
    FencedTable::new("account", &ledger())
        .install(&connection)
        .unwrap();
    let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    (scratch, connection, fence)
}

fn run(connection: &Connection, statement: &str) -> Result<usize, rusqlite::Error> {
    let statement = statement
        .replace("account", "\"a \"\"b\"")
        .replace("fence", "\"the \"\"token\"");
    connection.execute(&statement, [])
}

#[tokio::test]
async fn every_kind_of_stale_write_is_refused() {
    let (_scratch, fence, table, connection) = succeeded().await;
    for statement in [
        "INSERT INTO account VALUES (3, 1, 5)",
        "INSERT INTO account VALUES (3, 1, NULL)",
        "INSERT INTO account VALUES (3, 1, -9)",
        "INSERT INTO account VALUES (3, 1, '5')",
        "INSERT OR REPLACE INTO account VALUES (1, 1, 5)",
        "INSERT OR IGNORE INTO account VALUES (3, 1, 5)",
        "INSERT INTO account VALUES (1, 1, 5) ON CONFLICT DO UPDATE SET cents = 1, fence = 5",
        "UPDATE account SET cents = 0, fence = 5",
        "UPDATE account SET cents = 0",
        "UPDATE account SET cents = 0, fence = 10",
        "UPDATE account SET fence = NULL",
        "UPDATE account SET fence = -5",
        "UPDATE OR REPLACE account SET id = 2, fence = 5 WHERE id = 1",
        "DELETE FROM account",
        "DELETE FROM account WHERE id = 1",
    ] {
        let error = run(&connection, statement).expect_err(statement);
        let refusal = table.refusal(&fence, &term(5), &error).expect(statement);
        assert!(
            matches!(refusal, FenceError::Stale { .. }),
            "{statement}: {error}"
        );
    }
    let rows: String = connection
        .query_row(
            "SELECT group_concat(id || ' ' || cents) FROM \"a \"\"b\"",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(rows, "1 100,2 100");
}

#[tokio::test]
async fn the_term_that_claimed_writes_and_deletes() {
    let (_scratch, fence, table, connection) = succeeded().await;
    for statement in [
        "UPDATE account SET cents = 90, fence = 9 WHERE id = 1",
        "INSERT INTO account VALUES (3, 1, 9)",
        "INSERT OR REPLACE INTO account VALUES (3, 2, 9)",
        "INSERT INTO account VALUES (3, 1, 9) ON CONFLICT DO UPDATE SET cents = 5, fence = 9",
        "UPDATE account SET fence = -9 WHERE id = 3",
        "DELETE FROM account WHERE fence = -9",
    ] {
        assert_eq!(run(&connection, statement).expect(statement), 1, "{statement}");
    }
    // Of its own rows, too, a plain deletion is refused: it carries no token.
    let error = run(&connection, "DELETE FROM account WHERE id = 1").unwrap_err();
    let refusal = table.refusal(&fence, &term(9), &error).unwrap();
    assert!(matches!(refusal, FenceError::Unclaimed { .. }), "{refusal}");
    let unrelated = connection
        .execute("INSERT INTO no_such_table VALUES (1)", [])
        .unwrap_err();
    assert_eq!(table.refusal(&fence, &term(9), &unrelated), None);
}

#[tokio::test]
async fn refusals_of_triggers_are_counted_where_they_are_shown_to_the_fence() {
    let (scratch, fence, table, connection) = succeeded().await;
    for _ in 0..3 {
        let error = run(&connection, "UPDATE account SET fence = 5").unwrap_err();
        table.refusal(&fence, &term(5), &error).unwrap();
    }
    drop(fence);
    let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    assert_eq!(fence.mark(&ledger()).await.unwrap().unwrap().refused, 3);
}

#[tokio::test]
async fn a_refusal_is_recognised_while_somebody_writes() {
    let (scratch, fence, table, connection) = succeeded().await;
    let error = run(&connection, "UPDATE account SET fence = 5").unwrap_err();
    let other = scratch.raw();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let writing = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        other.execute_batch("COMMIT").unwrap();
    });
    let refusal = table.refusal(&fence, &term(5), &error);
    assert!(matches!(refusal, Some(FenceError::Stale { .. })), "{refusal:?}");
    writing.join().unwrap();
    // And one that never ends: it is a refusal all the same.
    let other = scratch.raw();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let refusal = table.refusal(&fence, &term(5), &error);
    assert!(
        matches!(&refusal, Some(FenceError::Store(error)) if error.fault == Fault::Busy),
        "{refusal:?}"
    );
}

#[tokio::test]
async fn without_a_mark_nobody_writes_and_without_triggers_everybody() {
    let (_scratch, _fence, table, connection) = succeeded().await;
    connection.execute("DELETE FROM tenure_fence", []).unwrap();
    run(&connection, "UPDATE account SET cents = 0, fence = 9").unwrap_err();
    run(&connection, "UPDATE account SET cents = 0, fence = NULL").unwrap_err();
    table.remove(&connection).unwrap();
    table.remove(&connection).unwrap();
    run(&connection, "DELETE FROM account").unwrap();
}

/// Two teams may mean one table: the job of the first would learn of it at its next write.
#[test]
fn a_guard_that_replaces_another_resources_says_which() {
    let (_scratch, connection, _fence) =
        guarded("CREATE TABLE account (id INTEGER PRIMARY KEY, fence INTEGER)");
    let other = ResourceName::new("other").unwrap();
    for (resource, replaced) in [
        (&ledger(), None),
        (&other, Some(ledger())),
        (&ledger(), Some(other.clone())),
    ] {
        let table = FencedTable::new("account", resource);
        assert_eq!(table.install(&connection), Ok(replaced));
    }
    let table = FencedTable::new("account", &other);
    table.remove(&connection).unwrap();
    assert_eq!(table.install(&connection), Ok(None));
}

#[test]
fn a_table_that_cannot_be_protected_is_told_with_the_repair() {
    let scratch = Scratch::new();
    let connection = scratch.raw();
    connection
        .execute_batch("CREATE TABLE account (id INTEGER, word TEXT)")
        .unwrap();
    SqliteFence::install(&connection).unwrap();
    let told = |table: FencedTable| match table.install(&connection).unwrap_err() {
        FenceError::Store(error) => (error.fault, error.message),
        other => panic!("{other}"),
    };
    let (fault, message) = told(FencedTable::new("account", &ledger()));
    assert_eq!(fault, Fault::Invalid);
    assert!(
        message.contains("ALTER TABLE \"account\" ADD COLUMN \"fence\" INTEGER"),
        "{message}"
    );
    let (fault, message) = told(FencedTable::new("account", &ledger()).column("word"));
    assert_eq!(fault, Fault::Invalid);
    assert!(message.contains("declare it INTEGER"), "{message}");
    let triggers: i64 = connection
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(triggers, 0);
}

#[tokio::test]
async fn a_mark_that_an_operator_raised_lets_nobody_write() {
    let (_scratch, connection, fence) =
        guarded("CREATE TABLE account (id INTEGER PRIMARY KEY, fence INTEGER)");
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let mark = fence.bump(&bump).await.unwrap();
    // Nobody has claimed: not even the number of the mark is anybody's.
    let refused = connection.execute("INSERT INTO account VALUES (1, ?1)", [mark.token.signed()]);
    assert!(refused.is_err(), "{refused:?}");
    let claimed = term(mark.token.number() + 1);
    fence.claim(&ledger(), &claimed).await.unwrap();
    let inserted = connection.execute("INSERT INTO account VALUES (1, ?1)", [claimed.token.signed()]);
    assert_eq!(inserted, Ok(1));
}

/// The triggers of a table go with it when it gets another name, and keep theirs.
#[test]
fn a_renamed_table_is_still_guarded_when_another_takes_its_name() {
    let scratch = Scratch::new();
    let connection = scratch.raw();
    let made = "CREATE TABLE account (id INTEGER PRIMARY KEY, fence INTEGER)";
    connection.execute_batch(made).unwrap();
    SqliteFence::install(&connection).unwrap();
    let guarded = FencedTable::new("account", &ledger());
    guarded.install(&connection).unwrap();
    connection
        .execute_batch("ALTER TABLE account RENAME TO account_2025")
        .unwrap();
    connection.execute_batch(made).unwrap();
    let insert = |table: &str| connection.execute(&format!("INSERT INTO {table} VALUES (1, 5)"), []);
    for _again in 0..2 {
        guarded.install(&connection).unwrap();
        for table in ["account", "account_2025"] {
            let refused = insert(table);
            assert!(refused.is_err(), "{table}: {refused:?}");
        }
    }
    FencedTable::new("ACCOUNT_2025", &ledger())
        .remove(&connection)
        .unwrap();
    assert_eq!(insert("account_2025"), Ok(1));
    let refused = insert("account");
    assert!(refused.is_err(), "{refused:?}");
}

/// A connection may know tables of the same name in other files, and in memory.
#[test]
fn a_guard_is_of_the_files_own_table_whatever_else_the_connection_knows() {
    let (scratch, elsewhere) = (Scratch::new(), Scratch::new());
    let made = "CREATE TABLE account (id INTEGER PRIMARY KEY, fence INTEGER)";
    let guarded = FencedTable::new("account", &ledger());
    for file in [&scratch, &elsewhere] {
        file.raw().execute_batch(made).unwrap();
        SqliteFence::install(&file.raw()).unwrap();
    }
    guarded.install(&elsewhere.raw()).unwrap();
    let connection = scratch.raw();
    connection
        .execute_batch(&format!(
            "ATTACH '{}' AS elsewhere; CREATE TEMP TABLE account (id INTEGER PRIMARY KEY, fence INTEGER)",
            elsewhere.file().display()
        ))
        .unwrap();
    let insert = |file: &Scratch| file.raw().execute("INSERT INTO account VALUES (1, 5)", []);
    guarded.install(&connection).unwrap();
    for file in [&scratch, &elsewhere] {
        let refused = insert(file);
        assert!(refused.is_err(), "{refused:?}");
    }
    guarded.remove(&connection).unwrap();
    assert_eq!(insert(&scratch), Ok(1));
    let refused = insert(&elsewhere);
    assert!(refused.is_err(), "{refused:?}");
}

/// The table of the marks would take no claim any more, and what is no table has no triggers that refuse.
#[test]
fn what_is_no_table_of_the_users_own_is_not_guarded() {
    let scratch = Scratch::new();
    let connection = scratch.raw();
    connection
        .execute_batch(
            "CREATE TABLE account (id INTEGER PRIMARY KEY, fence INTEGER);
             CREATE VIEW shown AS SELECT id, fence FROM account;
             CREATE VIRTUAL TABLE range USING rtree_i32(id, low, fence)",
        )
        .unwrap();
    SqliteFence::install(&connection).unwrap();
    for (table, column, part) in [
        ("shown", "fence", "a view"),
        ("range", "fence", "a virtual"),
        ("sqlite_schema", "rootpage", "your data"),
        ("Tenure_Fence", "token", "your data"),
    ] {
        let guarded = FencedTable::new(table, &ledger())
            .column(column)
            .install(&connection);
        let Err(FenceError::Store(error)) = guarded else {
            panic!("{table} is guarded")
        };
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    FencedTable::new("Account", &ledger())
        .install(&connection)
        .unwrap();
}

/// No trigger sees what is written by a blob handle. SQLite itself refuses that where an index has the
/// column, be it of no row.
#[tokio::test]
async fn blob_handle_writes_no_column_that_an_index_has() {
    let (_scratch, connection, fence) =
        guarded("CREATE TABLE account (id INTEGER PRIMARY KEY, body BLOB, fence INTEGER)");
    fence.claim(&ledger(), &term(9)).await.unwrap();
    let insert = "INSERT INTO account VALUES (1, zeroblob(5), 9)";
    connection.execute(insert, []).unwrap();
    let write = || -> Result<(), rusqlite::Error> {
        let mut blob = connection.blob_open(MAIN_DB, "account", "body", 1, false)?;
        blob.write_at(b"stale", 0)
    };
    write().expect("what the guard does not see");
    connection
        .execute_batch("CREATE INDEX no_handles ON account (body) WHERE 0")
        .unwrap();
    let refused = write().expect_err("the column has an index");
    assert!(refused.to_string().contains("indexed"), "{refused}");
}

/// What a foreign key does to rows that the current term has written is no write of anybody's who could carry
/// a token; a parent that is guarded itself takes only his that can.
#[tokio::test]
async fn what_foreign_keys_change_in_a_guarded_table_is_fenced_where_the_parent_is_guarded() {
    let (_scratch, connection, fence) = guarded(
        "PRAGMA foreign_keys = ON;
         CREATE TABLE client (id INTEGER PRIMARY KEY, fence INTEGER);
         CREATE TABLE account (id INTEGER PRIMARY KEY, fence INTEGER, \
             client REFERENCES client ON DELETE SET NULL ON UPDATE CASCADE)",
    );
    fence.claim(&ledger(), &term(9)).await.unwrap();
    connection
        .execute_batch("INSERT INTO client VALUES (1, 9); INSERT INTO account VALUES (1, 9, 1)")
        .unwrap();
    connection
        .execute("UPDATE client SET id = 2", [])
        .expect("what the guard takes for the current term's");
    FencedTable::new("client", &ledger())
        .install(&connection)
        .unwrap();
    for unfenced in ["UPDATE client SET id = 3, fence = 7", "DELETE FROM client"] {
        connection.execute(unfenced, []).expect_err(unfenced);
    }
    let client: i64 = connection
        .query_row("SELECT client FROM account", [], |row| row.get(0))
        .unwrap();
    assert_eq!(client, 2);
    connection
        .execute("UPDATE client SET id = 3, fence = 9", [])
        .unwrap();
}
