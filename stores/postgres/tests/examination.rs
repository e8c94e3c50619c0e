//! What an operator is told of a server and of a role that work, but not as one would think.
use crate::common::{PATIENCE, Scratch, request, seconds, take};
use std::time::Duration;
use tenure_conformance::asking::{another_clock_is_told_of, finding};
use tenure_core::{Certainty, Durability, Fault, Finding, LeaseStore, Verdict};
use tenure_postgres::PostgresStore;
use tenure_testkit::{FaultProxy, Postgres, ServerClock, eventually_async};

/// A role of the schema's name with these settings, which may do what the README grants.
async fn role(scratch: &Scratch, settings: &str) -> String {
    let role = &scratch.schema;
    scratch
        .sql(&format!(
            "CREATE ROLE {role} LOGIN; {settings} GRANT USAGE ON SCHEMA {{schema}} TO {role}; \
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {{schema}} TO {role}"
        ))
        .await;
    let uri = Postgres::shared().await.uri_as(role, None, "postgres");
    scratch.url_on(&uri, "")
}

/// What is found in the eyes of this URL's role, but for what is good.
async fn troubles(url: &str) -> Vec<Finding> {
    let store = PostgresStore::connect(url).await.unwrap();
    let mut findings = store.examine().await.unwrap();
    // The shared server does not wait for the disk, and how long a ping takes is the machine's.
    let is_the_servers = |finding: &Finding| !["durability", "round trip"].contains(&&*finding.subject);
    findings.retain(|finding| finding.verdict != Verdict::Good && is_the_servers(finding));
    findings
}

/// Where an administrator has taken from everybody what everybody has: a role that may write the tables by
/// itself renews nothing.
#[tokio::test]
async fn functions_that_a_role_may_not_call_are_told_of_with_the_way_out() {
    let scratch = Scratch::new().await;
    let url = role(&scratch, "").await;
    assert_eq!(troubles(&url).await, []);
    for (function, verdict) in [
        ("renew", Verdict::Bad),
        ("lock", Verdict::Bad),
        ("claim", Verdict::Warning),
        ("hold", Verdict::Warning),
    ] {
        scratch
            .sql(&format!(
                "REVOKE EXECUTE ON FUNCTION {{schema}}.{function} FROM PUBLIC"
            ))
            .await;
        let found = troubles(&url).await;
        assert!(
            matches!(&found[..], [one] if one.verdict == verdict && one.detail.contains(function)),
            "{function}: {found:?}"
        );
        let repair = found[0].repair.as_deref().unwrap();
        scratch.sql(repair).await;
        assert_eq!(troubles(&url).await, [], "after {repair}");
        scratch
            .sql(&format!(
                "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {{schema}} FROM {}",
                scratch.schema
            ))
            .await;
        scratch
            .sql(&format!(
                "GRANT EXECUTE ON FUNCTION {{schema}}.{function} TO PUBLIC"
            ))
            .await;
    }
}

/// Requests would be cut before they say that a row is kept locked, or refused where two meet.
#[tokio::test]
async fn settings_of_a_role_that_cut_or_refuse_requests_are_told_of() {
    let scratch = Scratch::new().await;
    let role_is = format!("ALTER ROLE {} SET", scratch.schema);
    let url = role(
        &scratch,
        &format!(
            "{role_is} statement_timeout = '4s'; {role_is} default_transaction_isolation = 'serializable';"
        ),
    )
    .await;
    let found = troubles(&url).await;
    assert!(
        matches!(&found[..], [isolation, timeout] if isolation.subject == "isolation" && timeout.subject == "statement timeout"
            && timeout.detail.contains("4000 ms")),
        "{found:?}"
    );
    // As it says, a request that waits for a row is cut before it would be told that it is busy.
    let store = PostgresStore::connect(&url).await.unwrap();
    let asked = request("job", "holder", seconds(60));
    take(&store, &asked).await;
    let (mut client, lock) = (
        scratch.client().await,
        "LOCK TABLE {schema}.leases IN EXCLUSIVE MODE",
    );
    let transaction = client.transaction().await.unwrap();
    transaction
        .batch_execute(&lock.replace("{schema}", &scratch.schema))
        .await
        .unwrap();
    scratch.sql(&format!("{role_is} statement_timeout = '1s'")).await;
    // Its other statements are cut as well, where a machine stands still for so long.
    let hurried = eventually_async(PATIENCE, "a store of a role in a hurry", || {
        PostgresStore::connect(&url)
    });
    let cut = hurried.await.acquire(&asked).await.unwrap_err();
    assert_eq!(
        (cut.fault, cut.certainty),
        (Fault::TimedOut, Certainty::NotApplied),
        "{cut}"
    );
    assert!(cut.message.contains("statement_timeout"), "{cut}");
    transaction.rollback().await.unwrap();
    for (finding, setting) in found
        .iter()
        .zip(["default_transaction_isolation", "statement_timeout"])
    {
        let repair = finding.repair.as_deref().unwrap();
        assert!(repair.contains(setting), "{repair}");
        // As it says, of this role.
        scratch
            .sql(
                &repair
                    .replace(" for Tenure's role", "")
                    .replace('…', &scratch.schema),
            )
            .await;
    }
    assert_eq!(troubles(&url).await, []);
}

/// It ends the connection, and with it what one would know of the request.
#[ignore = "before PostgreSQL 17 there is no such limit"]
#[tokio::test]
async fn limit_on_transactions_that_cuts_requests_is_told_of() {
    let scratch = Scratch::new().await;
    let limit = format!("ALTER ROLE {} SET transaction_timeout = '4s';", scratch.schema);
    let url = role(&scratch, &limit).await;
    let found = troubles(&url).await;
    assert!(
        matches!(&found[..], [one] if one.subject == "transaction timeout" && one.detail.contains("4000 ms")),
        "{found:?}"
    );
}

/// A fail-over to a server with another clock would shift every expiry, and a far one makes short ttls
/// unwise; each is told where it is so.
#[tokio::test]
async fn clock_and_distance_of_a_postgres_are_told_of() {
    let clock = ServerClock::new().unwrap();
    let server = Postgres::by(&clock).await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    let proxy = FaultProxy::postgres(server.address()).unwrap();
    let uri = format!("postgres://postgres@{}/postgres", proxy.address());
    let store = PostgresStore::connect(&scratch.url_on(&uri, "listen=off"))
        .await
        .unwrap();
    another_clock_is_told_of(&store, |seconds| clock.set_ahead(seconds).unwrap()).await;
    // It is not far, and nobody wakes who waits.
    assert_eq!(finding(&store, "watch").await.verdict, Verdict::Warning);
    proxy.set(tenure_testkit::Fault::Delay {
        to_server: Duration::ZERO,
        to_client: Duration::from_millis(150),
    });
    let told = finding(&store, "round trip").await;
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
}

/// Whose candidates may change what decides about leases, by being all-powerful or by a grant.
#[tokio::test]
async fn role_that_may_change_the_schema_is_told_of() {
    let scratch = Scratch::new().await;
    let url = role(&scratch, "").await;
    let grant = format!("GRANT CREATE ON SCHEMA {{schema}} TO {}", scratch.schema);
    scratch.sql(&grant).await;
    for url in [scratch.url(""), url] {
        let found = troubles(&url).await;
        assert!(matches!(&found[..], [one] if one.subject == "role"), "{found:?}");
    }
}

/// A page that a crash has torn takes with it what was confirmed, also where the server waits for the disk.
#[tokio::test]
async fn server_that_does_not_write_whole_pages_is_for_the_fence_alone() {
    let server = Postgres::with_settings(&["full_page_writes=off"]).await.unwrap();
    let durability = Scratch::on(&server.uri()).await.store().await.traits().durability;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("full_page_writes")),
        "{durability:?}"
    );
}

/// To be compared with what is said by whoever has met another cluster than before.
#[tokio::test]
async fn examination_shows_which_cluster_of_postgres_it_is() {
    let scratch = Scratch::new().await;
    let number: i64 = scratch
        .value("SELECT system_identifier FROM pg_control_system()")
        .await;
    let server = finding(&scratch.store().await, "server").await;
    assert!(
        server.detail.ends_with(&format!(", cluster {number}")),
        "{server:?}"
    );
}
