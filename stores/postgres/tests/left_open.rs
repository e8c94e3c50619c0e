//! What piles up on a server behind a transaction that somebody leaves open.
use crate::common::{PATIENCE, Scratch, giving_back, name, request, seconds, take};
use crate::meddling::{Meddling, meddling};
use tenure_core::{
    Certainty, Fault, Fence, FenceError, FencingToken, Finding, LeaseStore, Leases, Released, ResourceName,
    StoreError, Term, Verdict,
};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::{Postgres, eventually_async};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

async fn found(store: &PostgresStore, subject: &str) -> Option<Finding> {
    let findings = store.examine().await.unwrap();
    findings.into_iter().find(|finding| finding.subject == subject)
}

async fn process(client: &Client) -> String {
    let row = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
    row.get::<_, i32>(0).to_string()
}

/// No old version of a row is removed while somebody may still look at it.
#[tokio::test]
async fn old_versions_of_leases_are_told_of_with_who_keeps_them() {
    // On one of its own: another test's transaction may be older.
    let server = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    let store = scratch.store().await;
    let vacuum = under_vacuum(&scratch).await;
    let mut reader = scratch.client().await;
    let process = process(&reader).await;
    let report = reader.build_transaction();
    let report = report.isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
    let report = report.start().await.unwrap();
    let look = format!("SELECT FROM {}.leases", scratch.schema);
    assert!(report.query(&look, &[]).await.unwrap().is_empty());
    assert_eq!(found(&store, "old versions").await, None);
    scratch.sql(OLD_VERSIONS).await;
    eventually_async(PATIENCE, "what the server has counted", || async {
        found(&store, "old versions").await.is_some()
    })
    .await;
    let told = found(&store, "old versions").await.unwrap();
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
    let process = format!("process {process} (postgres)");
    for said in ["10001 beside 0 records", &process, " since "] {
        assert!(told.detail.contains(said), "{said}: {told:?}");
    }
    // It may be one that ends by itself, and all of them from just before it.
    let repair = told.repair.as_ref().unwrap();
    assert!(
        repair.starts_with("VACUUM") && repair.contains("end what is left open"),
        "{told:?}"
    );
    // Who is not shown more of others' sessions is told which it is all the same.
    let grants = "CREATE ROLE looking LOGIN; GRANT USAGE ON SCHEMA {schema} TO looking; \
                  GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO looking";
    scratch.sql(grants).await;
    let url = scratch.url_on(&server.uri_as("looking", None, "postgres"), "");
    let looking = PostgresStore::connect(&url).await.unwrap();
    let told = found(&looking, "old versions").await.unwrap();
    assert!(told.detail.ends_with(&process), "{told:?}");
    report.rollback().await.unwrap();
    vacuum.abort();
    scratch.sql("VACUUM {schema}.leases").await;
    eventually_async(PATIENCE, "what the server has counted", || async {
        found(&store, "old versions").await.is_none()
    })
    .await;
}

/// One more than is worth a look.
const OLD_VERSIONS: &str = "INSERT INTO {schema}.leases
    (name, owner, incarnation, token, attempt, terms, ttl_ms, created_at, acquired_at, expires_at, note)
    SELECT 'old-' || number, 'nobody', repeat('0', 32), 1, 1, 1, 1000, now(), now(), now(), ''
    FROM generate_series(1, 10001) AS number; DELETE FROM {schema}.leases";

/// Begins to vacuum a table of another program, which takes for ever: it shows the oldest snapshot of all,
/// and keeps nothing.
async fn under_vacuum(scratch: &Scratch) -> JoinHandle<()> {
    let made = "CREATE TABLE {schema}.big AS SELECT repeat('x', 1000) AS text FROM generate_series(1, 5000)";
    scratch.sql(made).await;
    let client = scratch.client().await;
    let vacuum = format!("VACUUM {}.big", scratch.schema);
    let vacuuming = tokio::spawn(async move {
        let slowly = "SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1";
        client.batch_execute(slowly).await.unwrap();
        // Until the test ends it.
        let _ended = client.batch_execute(&vacuum).await;
    });
    eventually_async(PATIENCE, "a vacuum that has begun", async || {
        let begun = "SELECT count(*) FROM pg_stat_progress_vacuum JOIN pg_stat_activity USING (pid) WHERE backend_xmin IS NOT NULL";
        scratch.value::<i64>(begun).await > 0
    })
    .await;
    // The next snapshot is of later.
    scratch.sql("CREATE TABLE {schema}.later ()").await;
    vacuuming
}

/// The server counts them for all of its databases together.
#[tokio::test]
async fn multixacts_that_are_not_vacuumed_are_told_of() {
    let settings = ["autovacuum=off", "autovacuum_multixact_freeze_max_age=10000"];
    let server = Postgres::with_settings(&settings).await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    let store = scratch.store().await;
    assert_eq!(found(&store, "multixacts").await, None);
    scratch
        .sql("CREATE TABLE {schema}.mark (token int); INSERT INTO {schema}.mark VALUES (1)")
        .await;
    let mut client = scratch.client().await;
    let inside = client.transaction().await.unwrap();
    let lock = format!("SELECT FROM {}.mark FOR SHARE", scratch.schema);
    inside.query_one(&lock, &[]).await.unwrap();
    // Of each that goes another comes, and with it another multixact of two.
    scratch.sql(&enters_and_leaves(10_001)).await;
    let told = found(&store, "multixacts").await.unwrap();
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
    assert!(told.detail.contains("1000"), "{told:?}");
    assert!(told.detail.contains("of 2 members each"), "{told:?}");
    assert!(told.repair.unwrap().contains("--freeze"));
    // They share their room with what has more members.
    let mut beside = Vec::new();
    for _ in 0..MORE_INSIDE {
        let client = scratch.client().await;
        client.batch_execute(&format!("BEGIN; {lock}")).await.unwrap();
        beside.push(client);
    }
    scratch.sql(&enters_and_leaves(LOOKED_INTO)).await;
    // Its next visitor is one more than are inside.
    let members = format!("of {} members each", MORE_INSIDE + 2);
    let told = found(&store, "multixacts").await.unwrap();
    assert!(told.detail.contains(&members), "{told:?}");
    for client in beside {
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    inside.rollback().await.unwrap();
    freeze_all(&server).await;
    assert_eq!(found(&store, "multixacts").await, None);
}

/// So many of the latest multixacts are looked into.
const LOOKED_INTO: u32 = 10;

/// How many enter beside the first.
const MORE_INSIDE: u32 = 5;

/// One after the other enters and leaves.
fn enters_and_leaves(times: u32) -> String {
    format!(
        "DO $$ BEGIN FOR number IN 1..{times} LOOP BEGIN PERFORM FROM {{schema}}.mark FOR SHARE; RAISE no_data_found; \
         EXCEPTION WHEN no_data_found THEN NULL; END; END LOOP; END $$"
    )
}

/// As where autovacuum does not keep up: the server takes no writes any more when all of their numbers are
/// used.
#[tokio::test]
async fn transactions_that_are_not_frozen_are_told_of() {
    let settings = ["autovacuum=off", "autovacuum_freeze_max_age=100000"];
    let server = Postgres::with_settings(&settings).await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    let store = scratch.store().await;
    assert_eq!(found(&store, "transactions").await, None);
    scratch
        .sql("CREATE TABLE {schema}.mark (token int); INSERT INTO {schema}.mark VALUES (1)")
        .await;
    let mut client = scratch.client().await;
    let open = client.transaction().await.unwrap();
    open.query_one("SELECT pg_current_xact_id()::text", &[])
        .await
        .unwrap();
    // Each has a number of its own.
    for _ in 0..20 {
        scratch.sql(&enters_and_leaves(10_001)).await;
    }
    let told = found(&store, "transactions").await.unwrap();
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
    assert!(told.detail.contains("in database postgres"), "{told:?}");
    assert!(told.repair.unwrap().contains("--freeze"));
    open.rollback().await.unwrap();
    freeze_all(&server).await;
    assert_eq!(found(&store, "transactions").await, None);
}

/// As `vacuumdb --all` does, which goes to each database that one can connect to.
async fn freeze_all(server: &Postgres) {
    for database in ["postgres", "template1"] {
        let client = Postgres::client(&server.uri_as("postgres", None, database))
            .await
            .unwrap();
        client.batch_execute("VACUUM (FREEZE)").await.unwrap();
    }
}

/// As a server says it whose queue is full.
#[tokio::test]
async fn release_for_whose_notification_there_is_no_room_is_told_what_to_end() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    scratch
        .sql(
            "CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             RAISE program_limit_exceeded USING MESSAGE = 'too many notifications in the NOTIFY queue'; END $$; \
             CREATE TRIGGER full_queue BEFORE UPDATE ON {schema}.leases FOR EACH ROW EXECUTE FUNCTION {schema}.full()",
        )
        .await;
    let releases = [giving_back(&asked, token)];
    is_full(&store.release(&releases).await.remove(0).unwrap_err());
}

/// As a server says it that has no room for rows that several have locked at once; the code is the same.
#[tokio::test]
async fn entry_for_which_there_is_no_room_beside_others_is_told_what_to_vacuum() {
    let scratch = Scratch::new().await;
    let fence = PostgresFence::connect(&scratch.url(""), Leases::Here)
        .await
        .unwrap();
    let (ledger, term) = (
        ResourceName::new("ledger").unwrap(),
        Term::new(name("job"), FencingToken::new(5).unwrap()),
    );
    fence.claim(&ledger, &term).await.unwrap();
    scratch
        .sql(
            "CREATE FUNCTION {schema}.full() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN \
             RAISE program_limit_exceeded USING MESSAGE = 'no new MultiXactIds'; END $$; \
             ALTER TABLE {schema}.fences RENAME TO marks; \
             CREATE VIEW {schema}.fences AS SELECT * FROM {schema}.marks WHERE {schema}.full()",
        )
        .await;
    let mut client = scratch.client().await;
    let transaction = client.transaction().await.unwrap();
    match fence.enter(&transaction, &ledger, &term).await.unwrap_err() {
        FenceError::Store(error) => tells_of_room(&error, "--freeze"),
        refusal => panic!("{refusal}"),
    }
}

/// By which of its sources a server has no room is in no language: transaction ids are no queue of
/// notifications.
#[tokio::test]
async fn what_a_postgres_has_no_room_for_is_told_with_its_own_way_out() {
    let scratch = Scratch::new().await;
    let asked = request("job", "holder", seconds(300));
    let token = take(&scratch.store().await, &asked).await.token;
    for (file, way_out, no_way_out) in [
        ("async.c", "end the session that listens", "--freeze"),
        ("varsup.c", "--freeze", "listens"),
        ("multixact.c", "--freeze", "listens"),
    ] {
        let answer: &'static [u8] = no_room(file).leak();
        let with = move |request: &[u8]| match request.windows(11).any(|piece| piece == b"give_back($") {
            true => Meddling::Answers(answer),
            false => Meddling::Nothing,
        };
        let (address, _) = meddling(Postgres::shared().await.address(), with).await;
        let uri = format!("postgres://postgres@{address}/postgres");
        let store = PostgresStore::connect(&scratch.url_on(&uri, "sslmode=disable"))
            .await
            .unwrap();
        let releases = [giving_back(&asked, token)];
        let error = store.release(&releases).await.remove(0).unwrap_err();
        tells_of_room(&error, way_out);
        assert!(
            error.message.contains("Kein Platz mehr. (54000)")
                && error.message.contains("hint: Raum schaffen."),
            "{error}"
        );
        assert!(!error.message.contains(no_way_out), "{file}: {error}");
    }
}

/// What a server answers that speaks German.
fn no_room(file: &str) -> Vec<u8> {
    let fields = format!("SFEHLER\0VERROR\0C54000\0MKein Platz mehr.\0HRaum schaffen.\0F{file}\0\0");
    let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
    [b"E", &length[..], fields.as_bytes(), b"Z\0\0\0\x05I"].concat()
}

fn is_full(error: &StoreError) {
    tells_of_room(error, "end the session that listens");
}

/// A server that says so by its own source.
fn is_full_and_no_more(error: &StoreError) {
    is_full(error);
    assert!(!error.message.contains("--freeze"), "{error}");
}

fn tells_of_room(error: &StoreError, way_out: &str) {
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Full, Certainty::NotApplied),
        "{error}"
    );
    assert!(error.message.contains(way_out), "{error}");
}

#[ignore = "before PostgreSQL 17 the queue has 8 GB"]
#[tokio::test]
async fn queue_of_notifications_that_fills_up_is_told_of_before_nothing_is_given_back() {
    let server = Postgres::with_settings(&["max_notify_queue_pages=64"])
        .await
        .unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    let token = take(&store, &asked).await.token;
    let mut listener = scratch.client().await;
    listener.batch_execute("LISTEN anything").await.unwrap();
    let transaction = listener.transaction().await.unwrap();
    transaction.query_one("SELECT 1", &[]).await.unwrap();
    assert_eq!(found(&store, "notifications").await, None);
    let notify = "SELECT pg_notify('anything', repeat('x', 7000))";
    let client = scratch.client().await;
    let mut told = None;
    // Each takes a page.
    let mut room = 2 * 64;
    while client.query_one(notify, &[]).await.is_ok() {
        room -= 1;
        assert!(room > 0, "it does not fill up");
        if told.is_none() {
            told = found(&store, "notifications").await;
        }
    }
    let told = told.expect("it is told of before it is full");
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
    let releases = [giving_back(&asked, token)];
    is_full_and_no_more(&store.release(&releases).await.remove(0).unwrap_err());
    transaction.rollback().await.unwrap();
    // Who asks for it has the server cut the queue, which nobody does who finds no room.
    eventually_async(PATIENCE, "room for notifications", || async {
        found(&store, "notifications").await.is_none()
    })
    .await;
    assert_eq!(store.release(&releases).await, [Ok(Released::Vacated)]);
}
