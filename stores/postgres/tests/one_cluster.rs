//! Hosts of one URL that are no primary and its standbys, and who may not ask what they are.
use crate::common::{PATIENCE, Scratch, renewal, request, seconds, take};
use crate::exchanged::nothing_is_written_at;
use std::time::{Duration, Instant};
use tenure_conformance::asking::finding;
use tenure_conformance::strangers::exchange;
use tenure_core::{Fault, LeaseStore as _, Leases, Renewed, StoreError, Verdict};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::{FaultProxy, Postgres, eventually_async, in_one_of};

/// Each is a primary, set up for leases, and would give each of them away.
#[tokio::test]
async fn hosts_of_postgres_of_different_clusters_are_refused() {
    let (ours, strange) = (Postgres::shared().await, Postgres::start().await.unwrap());
    let scratch = Scratch::new().await;
    let theirs = scratch.url_on(&strange.uri(), "");
    PostgresStore::init(&theirs).await.unwrap();
    let proxy = FaultProxy::postgres(strange.address()).unwrap();
    let both = format!(
        "postgres://postgres@{},{}/postgres",
        ours.address(),
        proxy.address()
    );
    let both = scratch.url_on(&both, "");
    // Who is met first, and how soon the other one says what it is, is as the machine has it.
    let are_refused = || async {
        let store = is_refused(PostgresStore::connect(&both)).await;
        store && is_refused(PostgresFence::connect(&both, Leases::Here)).await
    };
    in_one_of(ROUNDS_MAX, "both hosts were taken", are_refused).await;

    // One that is another of ours by then is told of to whoever asks; but who was late to the other host has
    // met this one, and goes by the connection that he has.
    let is_told_of = || async {
        proxy.lead_to(ours.address());
        let store = PostgresStore::connect(&both).await.unwrap();
        let told = finding(&store, "hosts").await;
        assert_eq!(told.verdict, Verdict::Good, "{told:?}");
        proxy.lead_to(strange.address());
        let told = finding(&store, "hosts").await;
        told.verdict == Verdict::Bad && told.detail.contains("is of cluster")
    };
    in_one_of(ROUNDS_MAX, "a stranger was told of to nobody", is_told_of).await;
}

/// How often a host may be too late to say what it is.
const ROUNDS_MAX: u32 = 20;

/// How long who connects waits for a host to say what it is: whoever is taken together with a stranger before
/// has not heard him out.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// Not, where a host was too late, or away.
///
/// # Panics
/// If both hosts were taken, and none was late.
async fn is_refused<T>(connecting: impl Future<Output = Result<T, StoreError>>) -> bool {
    let began = Instant::now();
    let Err(error) = connecting.await else {
        let took = began.elapsed();
        assert!(took >= LOOK_TIME_MAX, "both hosts were taken within {took:?}");
        return false;
    };
    let is_told = error.message.contains("is of cluster");
    assert!(!is_told || error.fault == Fault::Invalid, "{error}");
    is_told
}

/// As where a service keeps it back, or a server has no such function: nothing is compared.
#[tokio::test]
async fn role_that_may_not_ask_for_the_cluster_keeps_leases() {
    let server = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    let rights = "REVOKE ALL ON FUNCTION pg_control_system() FROM PUBLIC; CREATE ROLE service LOGIN; \
                  GRANT USAGE ON SCHEMA {schema} TO service; \
                  GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO service";
    scratch.sql(rights).await;
    let address = server.address();
    let url = scratch.url_on(&format!("postgres://service@{address},{address}/postgres"), "");
    let store = PostgresStore::connect(&url).await.unwrap();
    take(&store, &request("job", "holder", seconds(300))).await;
}

/// A cluster's servers have the same rights: one that does not say what ours has said is none of them.
#[tokio::test]
async fn server_that_may_not_say_its_cluster_is_refused_where_ours_is_known() {
    let ours = Scratch::new().await;
    let silent = Postgres::start().await.unwrap();
    PostgresStore::init(&ours.url_on(&silent.uri(), ""))
        .await
        .unwrap();
    let proxy = FaultProxy::postgres(Postgres::shared().await.address()).unwrap();
    // A role of its own on the server that tests share. A superuser could not be kept from saying it.
    let role = format!("of_{}", ours.schema);
    let url = ours.url_on(&format!("postgres://{role}@{}/postgres", proxy.address()), "");
    let rights = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {0} TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA {0} TO {role}",
        ours.schema
    );
    for uri in [&ours.uri, &silent.uri()] {
        Postgres::execute_at(uri, &rights).await.unwrap();
    }
    let hardened = "REVOKE ALL ON FUNCTION pg_control_system() FROM PUBLIC";
    Postgres::execute_at(&silent.uri(), hardened).await.unwrap();
    let store = PostgresStore::connect(&url).await.unwrap();
    exchange(&proxy, silent.address()).await;
    let refused = eventually_async(PATIENCE, "that it is refused", async || {
        let refused = store.acquire(&request("job", "holder", seconds(300))).await.err();
        refused.filter(|error| error.message.contains("does not say which cluster"))
    })
    .await;
    assert!(refused.message.contains("GRANT EXECUTE"), "{refused}");
    nothing_is_written_at(&silent, &ours).await;
}

/// It says still what the primary keeps back since: by what it says, the primary in use is no stranger.
#[tokio::test]
async fn term_is_kept_beside_a_standby_of_postgres_that_has_not_met_a_revoke() {
    let primary = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&primary.uri()).await;
    let rights = "CREATE ROLE service LOGIN; GRANT USAGE ON SCHEMA {schema} TO service; \
                  GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO service";
    scratch.sql(rights).await;
    let standby = primary.standby().await.unwrap();
    standby.execute("SELECT pg_wal_replay_pause()").await.unwrap();
    let behind = Scratch::bare(&standby.uri());
    eventually_async(PATIENCE, "a standby that stays behind", async || {
        let state: String = behind.value("SELECT pg_get_wal_replay_pause_state()").await;
        (state == "paused").then_some(())
    })
    .await;
    scratch
        .sql("REVOKE ALL ON FUNCTION pg_control_system() FROM PUBLIC")
        .await;
    let both = format!(
        "postgres://service@{},{}/postgres",
        primary.address(),
        standby.address()
    );
    let store = PostgresStore::connect(&scratch.url_on(&both, "")).await.unwrap();
    let job = request("job", "holder", seconds(300));
    let token = take(&store, &job).await.token;
    // On a connection that is made by now, after the standby was asked.
    let renewed = store.renew(&[renewal(&job, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}

/// Each would lead where it is connected, and nobody could see it later: not even a host that says what it is
/// is compared then.
#[tokio::test]
async fn primary_beside_a_postgres_that_does_not_say_its_cluster_is_refused() {
    let (silent, other) = (Postgres::start().await.unwrap(), Postgres::shared().await);
    let scratch = Scratch::on(&silent.uri()).await;
    PostgresStore::init(&scratch.url_on(&other.uri(), ""))
        .await
        .unwrap();
    let role = format!("of_{}", scratch.schema);
    let rights = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {0} TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA {0} TO {role}",
        scratch.schema
    );
    for uri in [silent.uri(), other.uri()] {
        Postgres::execute_at(&uri, &rights).await.unwrap();
    }
    scratch
        .sql("REVOKE ALL ON FUNCTION pg_control_system() FROM PUBLIC")
        .await;
    let both = format!(
        "postgres://{role}@{},{}/postgres",
        silent.address(),
        other.address()
    );
    let both = scratch.url_on(&both, "");
    let are_refused = || is_refused(PostgresStore::connect(&both));
    in_one_of(ROUNDS_MAX, "both hosts were taken", are_refused).await;
}
