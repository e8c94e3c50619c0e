//! What an operator is told of the tables: of Tenure's own that others have added to, and of guarded ones
//! that do not guard.
use crate::common::Scratch;
use crate::fence::{fenced, ledger, term};
use tenure_conformance::asking::finding;
use tenure_core::{Fence, Finding, LeaseStore, Leases, Verdict};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::Postgres;

async fn found_at(url: &str, subject: &str) -> Vec<Finding> {
    let store = PostgresStore::connect(url).await.unwrap();
    let mut findings = store.examine().await.unwrap();
    findings.retain(|finding| finding.subject == subject);
    findings
}

/// The only finding about this.
async fn only(scratch: &Scratch, subject: &str) -> Finding {
    let found = found_at(&scratch.url(""), subject).await;
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

fn is_told(found: &Finding, verdict: Verdict, said: &[&str]) {
    assert_eq!(found.verdict, verdict, "{found:?}");
    for said in said {
        assert!(found.detail.contains(said), "{said}: {found:?}");
    }
}

/// They may change what is written, or swallow it, or hold a second record of a name.
#[tokio::test]
async fn what_others_have_added_to_tables_of_postgres_is_told_of() {
    let scratch = Scratch::new().await;
    let additions = [
        (
            "CREATE FUNCTION {schema}.protect() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER protect BEFORE UPDATE ON {schema}.leases FOR EACH ROW EXECUTE FUNCTION {schema}.protect()",
            Verdict::Warning,
            "trigger protect of {schema}.leases",
            "DROP TRIGGER protect ON {schema}.leases",
        ),
        (
            "CREATE RULE keep AS ON DELETE TO {schema}.fences DO INSTEAD NOTHING",
            Verdict::Warning,
            "rule keep of {schema}.fences",
            "DROP RULE keep ON {schema}.fences",
        ),
        (
            "CREATE TABLE {schema}.archive () INHERITS ({schema}.leases)",
            Verdict::Bad,
            "{schema}.archive of {schema}.leases",
            "ALTER TABLE {schema}.archive NO INHERIT {schema}.leases",
        ),
        (
            "ALTER TABLE {schema}.refusals RENAME TO kept; CREATE VIEW {schema}.refusals AS TABLE {schema}.kept",
            Verdict::Bad,
            "no plain tables, as which alone they were tried: {schema}.refusals",
            "DROP VIEW {schema}.refusals; ALTER TABLE {schema}.kept RENAME TO refusals",
        ),
    ];
    for (added, verdict, said, removed) in additions {
        scratch.sql(added).await;
        let said = said.replace("{schema}", &scratch.schema);
        is_told(&only(&scratch, "tables").await, verdict, &[&said]);
        scratch.sql(removed).await;
        assert_eq!(found_at(&scratch.url(""), "tables").await, []);
    }
}

/// On a server of its own, as the settings of roles are those of all of its databases.
async fn guarded() -> (Postgres, Scratch, PostgresFence) {
    let server = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    let fence = PostgresFence::connect(&scratch.url(""), Leases::Here)
        .await
        .unwrap();
    scratch.sql("CREATE TABLE {schema}.account (id int)").await;
    let table = format!("{}.account", scratch.schema);
    fence.guard(&table, &ledger()).await.unwrap();
    (server, scratch, fence)
}

/// As a bulk load leaves a table behind that died.
#[tokio::test]
async fn guard_of_postgres_that_is_switched_off_is_told_of() {
    let (scratch, fence) = fenced().await;
    let table = format!("{}.account", scratch.schema);
    fence.guard(&table, &ledger()).await.unwrap();
    assert_eq!(found_at(&scratch.url(""), "guards").await, []);
    scratch
        .sql("ALTER TABLE {schema}.account DISABLE TRIGGER ALL; INSERT INTO {schema}.account VALUES (77, 0)")
        .await;
    let told = only(&scratch, "guards").await;
    is_told(&told, Verdict::Bad, &["switched off", &table, "tenure_fence"]);
    assert!(told.repair.unwrap().contains("ENABLE TRIGGER"));
    scratch
        .sql("ALTER TABLE {schema}.account ENABLE TRIGGER tenure_fence")
        .await;
    assert_eq!(found_at(&scratch.url(""), "guards").await, []);
}

/// In their sessions no trigger of a guard is called.
#[tokio::test]
async fn sessions_that_get_past_the_guards_of_postgres_are_told_of() {
    let (_server, scratch, _fence) = guarded().await;
    assert_eq!(found_at(&scratch.url(""), "guards").await, []);
    let replica = scratch.url("options=-csession_replication_role%3Dreplica");
    let told = found_at(&replica, "guards").await;
    is_told(&told[0], Verdict::Warning, &["for this session"]);
    let is_replica = "SET session_replication_role = 'replica'";
    for (whose, said) in [
        ("ROLE loader", "for role loader"),
        ("ROLE loader IN DATABASE postgres", "for role loader"),
        ("DATABASE postgres", "for every role, this session"),
    ] {
        scratch
            .sql(&format!("CREATE ROLE loader LOGIN; ALTER {whose} {is_replica}"))
            .await;
        is_told(&only(&scratch, "guards").await, Verdict::Warning, &[said]);
        scratch
            .sql(&format!(
                "ALTER {whose} RESET session_replication_role; DROP ROLE loader"
            ))
            .await;
    }
    // Elsewhere it is nothing to these tables.
    scratch
        .sql(&format!("ALTER DATABASE template1 {is_replica}"))
        .await;
    assert_eq!(found_at(&scratch.url(""), "guards").await, []);
}

/// A cascade is its table's owner's, and so is what the guard asks then.
#[tokio::test]
async fn owner_whose_cascades_are_refused_by_a_guard_of_postgres_is_told_of() {
    let (_server, scratch, fence) = guarded().await;
    scratch
        .sql(
            "CREATE ROLE own; CREATE TABLE {schema}.parent (id int PRIMARY KEY); INSERT INTO {schema}.parent VALUES (1); \
             ALTER TABLE {schema}.account OWNER TO own",
        )
        .await;
    // Without a cascade it writes nothing by itself.
    assert_eq!(found_at(&scratch.url(""), "guards").await, []);
    scratch
        .sql("ALTER TABLE {schema}.account ADD FOREIGN KEY (id) REFERENCES {schema}.parent ON DELETE CASCADE")
        .await;
    let held = term("job", 5);
    fence.claim(&ledger(), &held).await.unwrap();
    let mut client = scratch.client().await;
    let delete = format!("DELETE FROM {}.parent", scratch.schema);
    let transaction = client.transaction().await.unwrap();
    fence.enter(&transaction, &ledger(), &held).await.unwrap();
    let refused = transaction.execute(&delete, &[]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501", "{refused:?}");
    transaction.rollback().await.unwrap();
    let told = only(&scratch, "guards").await;
    is_told(&told, Verdict::Warning, &["cascades", "own"]);
    scratch.sql(&told.repair.unwrap()).await;
    assert_eq!(found_at(&scratch.url(""), "guards").await, []);
    let transaction = client.transaction().await.unwrap();
    fence.enter(&transaction, &ledger(), &held).await.unwrap();
    assert_eq!(transaction.execute(&delete, &[]).await.unwrap(), 1);
    transaction.commit().await.unwrap();
}

/// It may be a standby that is started anew: the store was judged without it, and is safe in its own eyes.
#[tokio::test]
async fn slot_of_postgres_by_which_nothing_follows_is_told_of() {
    let server = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    assert_eq!(found_at(&scratch.url(""), "standbys").await, []);
    scratch
        .sql("SELECT pg_create_physical_replication_slot('replica1')")
        .await;
    let told = only(&scratch, "standbys").await;
    is_told(&told, Verdict::Warning, &["replication slots replica1"]);
    let store = scratch.store().await;
    assert_eq!(finding(&store, "durability").await.verdict, Verdict::Good);
    scratch.sql("SELECT pg_drop_replication_slot('replica1')").await;
    assert_eq!(found_at(&scratch.url(""), "standbys").await, []);
}
