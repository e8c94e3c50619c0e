//! Set-ups of other versions of Tenure: what is found out about them, and who replaces what.
use crate::common::{PATIENCE, Scratch};
use crate::fence::{fenced, ledger, term};
use std::time::Duration;
use tenure_core::{Claimed, Fault, Fence, FenceError, Finding, LeaseStore, Verdict};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::Postgres;

/// How long a writer is open.
const OPEN_FOR: Duration = Duration::from_millis(50);

async fn found(scratch: &Scratch, subject: &str) -> Option<Finding> {
    let findings = scratch.store().await.examine().await.unwrap();
    findings.into_iter().find(|finding| finding.subject == subject)
}

/// Has the body of a function be another one, which does the same.
async fn rewritten(scratch: &Scratch, function: &str) {
    let client = scratch.client().await;
    let asked = "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
                 WHERE n.nspname = $1 AND p.proname = $2";
    let row = client
        .query_one(asked, &[&scratch.schema, &function])
        .await
        .unwrap();
    let other = row.get::<_, String>(0).replacen("BEGIN", "BEGIN NULL;", 1);
    client.batch_execute(&other).await.unwrap();
}

/// What an earlier Tenure of the same version has set up works, and is told of by name until it is set up
/// again.
#[tokio::test]
async fn function_that_is_missing_or_another_is_told_of_with_the_way_out_in_postgres() {
    let scratch = Scratch::new().await;
    let finding = found(&scratch, "set-up").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
    let told = |finding: &Finding, name: &str| {
        assert!(finding.detail.contains(name), "{finding:?}");
        let repair = finding.repair.as_deref().unwrap_or_default();
        assert!(repair.contains("tenure store init"), "{finding:?}");
    };
    for function in ["claim", "enter", "acquire", "take", "give_back"] {
        rewritten(&scratch, function).await;
        let finding = found(&scratch, "set-up").await.unwrap();
        assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
        told(&finding, function);
    }
    // The same body with the caller's search path does not do the same.
    PostgresStore::init(&scratch.url("")).await.unwrap();
    scratch
        .sql("ALTER FUNCTION {schema}.renew RESET search_path")
        .await;
    let finding = found(&scratch, "set-up").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
    told(&finding, "renew");
    // One that takes other arguments is not the one that is called.
    PostgresStore::init(&scratch.url("")).await.unwrap();
    scratch
        .sql(
            "DROP FUNCTION {schema}.bump(text, bigint, text); \
             CREATE FUNCTION {schema}.bump() RETURNS void LANGUAGE sql AS ''",
        )
        .await;
    let finding = found(&scratch, "set-up").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
    told(&finding, "bump");
    scratch.sql("DROP FUNCTION {schema}.bump()").await;
    let finding = found(&scratch, "set-up").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Bad, "{finding:?}");
    told(&finding, "bump");
    // An earlier set-up needs none that was not made yet.
    rewritten(&scratch, "claim").await;
    let finding = found(&scratch, "set-up").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
    told(&finding, "bump");
    told(&finding, "claim");
    PostgresStore::init(&scratch.url("")).await.unwrap();
    let finding = found(&scratch, "set-up").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
}

/// A server that quotes each name writes a search path down in quotes: it is the same path.
#[tokio::test]
async fn functions_that_were_made_where_names_are_quoted_are_those_of_this_version() {
    let scratch = Scratch::bare(&Postgres::shared().await.uri());
    let quoting = scratch.url("options=-cquote_all_identifiers%3Don");
    PostgresStore::init(&quoting).await.unwrap();
    let finding = found(&scratch, "set-up").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
    // One schema of that name is none of the server's own.
    scratch
        .sql("ALTER FUNCTION {schema}.renew SET search_path = 'pg_catalog, pg_temp'")
        .await;
    let finding = found(&scratch, "set-up").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
    assert!(finding.detail.contains("renew"), "{finding:?}");
}

/// An earlier Tenure takes nothing back of a later set-up, by itself or by its statements.
#[tokio::test]
async fn later_set_up_is_left_as_it_is_by_an_earlier_one() {
    let scratch = Scratch::new().await;
    rewritten(&scratch, "claim").await;
    let later =
        "CREATE OR REPLACE FUNCTION {schema}.version() RETURNS integer LANGUAGE sql AS 'SELECT {version}'";
    let set = |version: &'static str| later.replace("{version}", version);
    scratch.sql(&set("99")).await;
    let error = PostgresStore::init(&scratch.url("")).await.unwrap_err();
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(
        error.message.contains("99") && error.message.contains("latest"),
        "{error}"
    );
    let printed = PostgresStore::init_statements(&scratch.url("")).unwrap();
    let run = scratch.client().await.batch_execute(&printed).await;
    assert!(run.is_err(), "the statements that are printed");
    scratch.sql(&set("1")).await;
    let finding = found(&scratch, "set-up").await.unwrap();
    assert!(finding.detail.contains("claim"), "it was replaced: {finding:?}");
    // And an earlier one is brought up to date.
    scratch.sql(&set("0")).await;
    PostgresStore::init(&scratch.url("")).await.unwrap();
    let finding = found(&scratch, "set-up").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
}

/// Who owns the schema needs no right in the database: a schema is made for a role that may make none.
#[tokio::test]
async fn owner_of_the_schema_alone_sets_it_up_and_again() {
    let scratch = Scratch::bare(&Postgres::shared().await.uri());
    let role = scratch.schema.clone();
    scratch
        .sql(&format!(
            "CREATE ROLE {role} LOGIN; CREATE SCHEMA {{schema}} AUTHORIZATION {role}"
        ))
        .await;
    let by_owner = Postgres::shared().await.uri_as(&role, None, "postgres");
    for _again in 0..2 {
        PostgresStore::init(&scratch.url_on(&by_owner, "")).await.unwrap();
    }
    // Who may not make one is told so.
    let missing = Scratch::bare(&by_owner);
    let error = PostgresStore::init(&missing.url("")).await.unwrap_err();
    assert_eq!(error.fault, Fault::Forbidden, "{error}");
    assert!(error.message.contains("README names the grants"), "{error}");
}

/// A partition that was guarded by an earlier Tenure, or attached since: its parent's name is a way round.
#[tokio::test]
async fn guarded_table_that_takes_its_parents_writes_unasked_is_told_of() {
    let (scratch, fence) = fenced().await;
    scratch
        .sql(
            "CREATE TABLE {schema}.parted (id int) PARTITION BY RANGE (id); \
             CREATE TABLE {schema}.\"odd part\" PARTITION OF {schema}.parted FOR VALUES FROM (0) TO (10); \
             CREATE TABLE {schema}.later (id int); \
             CREATE TABLE {schema}.unguarded PARTITION OF {schema}.parted FOR VALUES FROM (20) TO (30)",
        )
        .await;
    let tables = ["account", "\"odd part\"", "later"].map(|table| format!("{}.{table}", scratch.schema));
    for table in &tables {
        fence.guard(table, &ledger()).await.unwrap();
    }
    assert_eq!(found(&scratch, "guards").await, None);
    scratch
        .sql(
            "DROP TRIGGER tenure_fence_row ON {schema}.\"odd part\"; \
             ALTER TABLE {schema}.parted ATTACH PARTITION {schema}.later FOR VALUES FROM (10) TO (20); \
             INSERT INTO {schema}.parted VALUES (1), (11)",
        )
        .await;
    let finding = found(&scratch, "guards").await.unwrap();
    assert_eq!(finding.verdict, Verdict::Bad);
    for (table, told) in tables.iter().zip([false, true, true]) {
        assert_eq!(
            finding.detail.contains(table.as_str()),
            told,
            "{table}: {finding:?}"
        );
    }
    assert!(!finding.detail.contains("unguarded"), "{finding:?}");
    assert!(finding.repair.unwrap().contains("tenure fence guard"));
    for table in &tables {
        fence.guard(table, &ledger()).await.unwrap();
    }
    assert_eq!(found(&scratch, "guards").await, None);
}

/// Writers of an earlier Tenure lock the row alone: a claim that they keep out is told so, and waits no
/// longer by itself.
#[tokio::test]
async fn claim_that_is_kept_out_by_writers_without_the_turnstile_is_told_so() {
    let (scratch, fence) = fenced().await;
    let old = term("nightly", 5);
    fence.claim(&ledger(), &old).await.unwrap();
    let asked = format!(
        "SELECT token FROM {}.fences WHERE resource = '{}' FOR SHARE",
        scratch.schema,
        ledger().as_str().replace('\'', "''")
    );
    let (uri, (locked, begun)) = (scratch.uri.clone(), tokio::sync::oneshot::channel());
    let writers = tokio::spawn(async move {
        let [one, two] = [Postgres::client(&uri).await, Postgres::client(&uri).await];
        let [mut one, mut two] = [one.unwrap(), two.unwrap()];
        let mut inside = one.transaction().await.unwrap();
        inside.query_one(&asked, &[]).await.unwrap();
        locked.send(()).unwrap();
        // Each comes in before the one before it leaves.
        loop {
            let next = two.transaction().await.unwrap();
            next.query_one(&asked, &[]).await.unwrap();
            inside.commit().await.unwrap();
            tokio::time::sleep(OPEN_FOR).await;
            inside = one.transaction().await.unwrap();
            inside.query_one(&asked, &[]).await.unwrap();
            next.commit().await.unwrap();
            tokio::time::sleep(OPEN_FOR).await;
        }
    });
    begun.await.unwrap();
    let kept_out = claimed(&fence).await.unwrap_err();
    let FenceError::Store(error) = kept_out else {
        panic!("{kept_out}")
    };
    // On a machine that stands still the store may give it up before the server does: then it may be made all
    // the same.
    let given_up = error.fault == Fault::TimedOut;
    assert!(given_up || error.fault == Fault::Busy, "{error}");
    writers.abort();
    assert!(writers.await.unwrap_err().is_cancelled());
    let claimed = claimed(&fence).await;
    assert!(
        matches!(claimed, Ok(Claimed::Raised { .. })) || given_up && claimed == Ok(Claimed::Already),
        "{claimed:?}"
    );
}

async fn claimed(fence: &PostgresFence) -> Result<Claimed, FenceError> {
    let (resource, term) = (ledger(), term("nightly", 6));
    let claim = fence.claim(&resource, &term);
    tokio::time::timeout(PATIENCE, claim).await.unwrap()
}
