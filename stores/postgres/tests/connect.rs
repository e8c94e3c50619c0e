//! Connecting: what is refused, how soon, and what no message ever holds.
use crate::common::{Scratch, only_the_cleaner_cleans_up, request, seconds, take};
use std::time::{Duration, Instant};
use tenure_core::{
    Certainty, Durability, Fault, Finding, Interest, LeaseStore, Scope, StoreError, Verdict, WatchSource,
};
use tenure_postgres::PostgresStore;
use tenure_testkit::{PgBouncer, Postgres, free_port};

const SECRET: &str = "hunter2-s3cret";

/// Far beyond the promise of 5 s, for a loaded machine.
const BOUND: Duration = Duration::from_secs(20);

pub async fn refused(url: &str) -> StoreError {
    let began = Instant::now();
    let error = PostgresStore::connect(url)
        .await
        .expect_err(&format!("{url} was accepted"));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    assert!(!error.message.contains('\n'), "{error}");
    assert_eq!(error.certainty, Certainty::NotApplied);
    error
}

#[tokio::test]
async fn unreachable_server_of_postgres_is_named_without_the_password() {
    let port = free_port();
    let error = refused(&format!("postgres://me:{SECRET}@127.0.0.1:{port}/db")).await;
    assert_eq!(error.fault, Fault::Unreachable);
    assert!(error.message.contains(&format!("127.0.0.1:{port}")), "{error}");
}

#[tokio::test]
async fn silent_server_of_postgres_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let error = refused(&format!("postgres://me:{SECRET}@{address}/db")).await;
    assert!(
        matches!(error.fault, Fault::Unreachable | Fault::TimedOut),
        "{error}"
    );
    assert!(error.message.contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn url_of_postgres_that_cannot_be_read_is_refused_without_showing_it() {
    let urls = [
        format!("postgres://me:{SECRET}@"),
        format!("postgres://me:{SECRET}@127.0.0.1:notaport/db"),
        format!("postgres://me:{SECRET}@127.0.0.1:99999/db"),
        // Special characters of a password that should have been escaped: what follows them stands elsewhere.
        format!("postgres://me:x@{SECRET}@127.0.0.1/db"),
        format!("postgres://me:x@127.0.0.1/{SECRET}@127.0.0.1/db"),
        format!("postgres://me:x@127.0.0.1/{SECRET}?x@127.0.0.1/db"),
        format!("postgres://me:{SECRET}@line%0Abreak/db"),
        format!("postgres://me:{SECRET}@127.0.0.1/line%0Abreak"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?no_such_option={SECRET}"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?schema="),
        format!("postgres://me:{SECRET}@127.0.0.1/db?schema=a%22b"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?schema=pg_mine"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?schema=1st"),
        // Its channel's name would be too long, and no release go through.
        format!("postgres://me:{SECRET}@127.0.0.1/db?schema={}", "a".repeat(49)),
        format!("postgres://me:{SECRET}@127.0.0.1/db?listen=perhaps"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?sslmode=often"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?sslmode=verify-full&sslrootcert=/no/such/file"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?sslrootcert=/no/such/file"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?sslmode=prefer&sslrootcert=/no/such/file"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?sslcert=/mine.pem"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?sslnegotiation=direct"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?sslnegotiation=direct&sslmode=disable"),
        // Of two, nobody could say which counts: of ours, of the driver's, and of what may be a password's
        // end.
        format!("postgres://me:{SECRET}@127.0.0.1/db?schema=a&schema=b"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?sslmode=verify-full&listen=off&sslmode=disable"),
        format!("postgres://me:{SECRET}@127.0.0.1/db?connect_timeout=1&connect_timeout=2"),
        format!("postgres://me:x?{SECRET}&{SECRET}"),
        // The driver would read it; whoever takes the password out before a command gets the URL would not.
        format!("postgres://me@127.0.0.1/db?passwor%64={SECRET}"),
        format!("mongodb://me:{SECRET}@127.0.0.1/db"),
        // A list of URLs: its database would be the others.
        "postgres://a,postgres://b/db".to_owned(),
        String::new(),
    ];
    for url in urls {
        let error = refused(&url).await;
        assert_eq!(error.fault, Fault::Invalid, "{url}");
        let is_list = url.matches("://").count() > 1;
        assert_eq!(
            error.message.contains("write the scheme once"),
            is_list,
            "{error}"
        );
    }
}

/// Connecting says what is missing, and who may only read may connect, and is told when it would write.
#[tokio::test]
async fn credentials_privileges_and_settings_are_told_apart() {
    let server = Postgres::with_passwords().await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    scratch
        .sql(&format!(
            "CREATE ROLE stranger LOGIN PASSWORD '{SECRET}'; CREATE ROLE reader LOGIN PASSWORD '{SECRET}'; \
             CREATE ROLE writer LOGIN PASSWORD '{SECRET}'; CREATE ROLE cleaner LOGIN PASSWORD '{SECRET}'; \
             CREATE ROLE uncounted LOGIN PASSWORD '{SECRET}'; CREATE ROLE frozen LOGIN PASSWORD '{SECRET}'; \
             CREATE ROLE crowded LOGIN PASSWORD '{SECRET}' CONNECTION LIMIT 0; \
             ALTER ROLE frozen SET default_transaction_read_only = on; \
             GRANT USAGE ON SCHEMA {{schema}} TO reader, writer, cleaner, uncounted, frozen; \
             GRANT SELECT ON ALL TABLES IN SCHEMA {{schema}} TO reader, cleaner, uncounted; \
             GRANT INSERT, UPDATE ON {{schema}}.leases, {{schema}}.fences TO uncounted; \
             GRANT UPDATE, DELETE ON {{schema}}.leases TO cleaner; \
             GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {{schema}} TO writer, frozen"
        ))
        .await;
    let url =
        |user: &str, password: &str| scratch.url_on(&server.uri_as(user, Some(password), "postgres"), "");
    assert_eq!(
        refused(&url("reader", "wrong")).await.fault,
        Fault::Unauthenticated
    );
    assert_eq!(
        refused(&url("nobody", SECRET)).await.fault,
        Fault::Unauthenticated
    );
    assert_eq!(refused(&url("stranger", SECRET)).await.fault, Fault::Forbidden);
    assert_eq!(refused(&url("crowded", SECRET)).await.fault, Fault::Busy);
    let asked = request("job", "a", seconds(60));
    for (user, fault) in [("reader", Fault::Forbidden), ("frozen", Fault::ReadOnly)] {
        let store = PostgresStore::connect(&url(user, SECRET)).await.unwrap();
        assert_eq!(store.get(&asked.name).await.unwrap(), None);
        let error = store.acquire(&asked).await.unwrap_err();
        assert_eq!(
            (error.fault, error.certainty),
            (fault, Certainty::NotApplied),
            "{error}"
        );
        let findings = store.examine().await.unwrap();
        let bad = findings
            .iter()
            .any(|finding| finding.verdict == Verdict::Bad && finding.repair.is_some());
        assert_eq!(bad, user == "reader", "{findings:?}");
    }
    let set_up = PostgresStore::init(&url("frozen", SECRET)).await.unwrap_err();
    assert_eq!(
        (set_up.fault, set_up.certainty),
        (Fault::ReadOnly, Certainty::NotApplied),
        "{set_up}"
    );
    let writer = PostgresStore::connect(&url("writer", SECRET)).await.unwrap();
    take(&writer, &asked).await;
    let findings = writer.examine().await.unwrap();
    // How long a ping takes is the machine's.
    let is_amiss = |finding: &&Finding| finding.verdict != Verdict::Good && finding.subject != "round trip";
    assert_eq!(findings.iter().find(is_amiss), None);
    let uncounted = PostgresStore::connect(&url("uncounted", SECRET)).await.unwrap();
    let findings = uncounted.examine().await.unwrap();
    let warned: Vec<_> = findings.iter().filter(is_amiss).collect();
    assert!(
        matches!(warned.as_slice(), [one] if one.subject == "fences" && one.detail.contains("insert, update refusals")),
        "{findings:?}"
    );
    let cleaner = PostgresStore::connect(&url("cleaner", SECRET)).await.unwrap();
    only_the_cleaner_cleans_up(&writer, &cleaner).await;
}

/// What was not set up, or is another program's, or another version's, is refused with the way out, and left
/// as it is.
#[tokio::test]
async fn schema_that_is_not_ours_is_refused_and_left_as_it_is() {
    let uri = Postgres::shared().await.uri();
    let bare = Scratch::bare(&uri);
    let error = refused(&bare.url("")).await;
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("tenure store init"), "{error}");
    bare.sql("CREATE SCHEMA {schema}; CREATE TABLE {schema}.leases (name text, colour text)")
        .await;
    assert_eq!(refused(&bare.url("")).await.fault, Fault::Unsupported);
    let refusal = PostgresStore::init(&bare.url("")).await.unwrap_err();
    assert_eq!(refusal.fault, Fault::Unsupported, "{refusal}");
    assert!(
        refusal.message.contains("a schema of their own") && !refusal.message.contains("store init"),
        "{refusal}"
    );
    bare.sql("SELECT colour FROM {schema}.leases").await;
    let version = Scratch::on(&uri).await;
    version
        .sql("CREATE OR REPLACE FUNCTION {schema}.version() RETURNS integer LANGUAGE sql AS 'SELECT 99'")
        .await;
    let error = refused(&version.url("")).await;
    assert!(error.message.contains("99"), "{error}");
}

/// One that is not there, and one whose encoding could change a name on the way.
#[tokio::test]
async fn database_that_will_not_do_is_told_of_in_postgres() {
    let server = Postgres::shared().await;
    let latin = Scratch::bare(&server.uri()).schema;
    server
        .execute(&format!(
            "CREATE DATABASE {latin} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
        ))
        .await
        .unwrap();
    for (database, fault, way_out) in [
        ("no_such_database", Fault::Invalid, "name a database in the URL"),
        (
            latin.as_str(),
            Fault::Unsupported,
            "not encoded in UTF8, so names could be changed on the way; create one that is",
        ),
    ] {
        let url = server.uri_of(database);
        let set_up = PostgresStore::init(&url).await.unwrap_err();
        for error in [refused(&url).await, set_up] {
            assert_eq!(
                (error.fault, error.certainty),
                (fault, Certainty::NotApplied),
                "{error}"
            );
            assert!(
                error.message.contains(database) && error.message.contains(way_out),
                "{error}"
            );
            assert!(!error.message.contains('\n'), "{error}");
        }
    }
}

/// Ten at once, and again over leases that are held: nothing is lost.
#[tokio::test]
async fn set_up_may_be_repeated_and_race_and_keeps_what_is_there() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(60));
    let grant = take(&store, &asked).await;
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let url = scratch.url("");
        racing.spawn(async move { PostgresStore::init(&url).await });
    }
    for made in racing.join_all().await {
        made.unwrap();
    }
    let lease = store.get(&asked.name).await.unwrap().unwrap();
    assert_eq!(lease.token, grant.token);
    assert!(
        PostgresStore::init_statements(&scratch.url(""))
            .unwrap()
            .contains(&scratch.schema)
    );
}

/// A server that can forget what it has confirmed is told of; so is one whose standby follows behind.
#[tokio::test]
async fn server_that_forgets_is_for_the_fence_alone() {
    let safe = Postgres::with_settings(&["synchronous_commit=off"])
        .await
        .unwrap();
    let store = Scratch::on(&safe.uri()).await.store().await;
    assert_eq!(
        store.traits().durability,
        Durability::Safe,
        "writes of terms wait all the same"
    );
    let forgetful = Scratch::new().await.store().await;
    let Durability::FenceOnly(why) = forgetful.traits().durability else {
        panic!("fsync is off")
    };
    assert!(why.contains("fsync"), "{why}");
    let findings = forgetful.examine().await.unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding.subject == "durability" && finding.verdict == Verdict::Warning),
        "{findings:?}"
    );
}

/// The server empties an unlogged table when it comes up after a crash: of leases that is said, and with such
/// marks nobody begins.
#[tokio::test]
async fn tables_that_a_crash_empties_are_told_of_or_refused() {
    let server = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    assert_eq!(scratch.store().await.traits().durability, Durability::Safe);
    scratch.sql("ALTER TABLE {schema}.leases SET UNLOGGED").await;
    let durability = scratch.store().await.traits().durability;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("UNLOGGED")),
        "{durability:?}"
    );
    scratch.sql("ALTER TABLE {schema}.fences SET UNLOGGED").await;
    let way_out = format!("ALTER TABLE {}.fences SET LOGGED", scratch.schema);
    let error = refused(&scratch.url("")).await;
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains(&way_out), "{error}");
    scratch
        .sql(&format!("{way_out}; ALTER TABLE {{schema}}.leases SET LOGGED"))
        .await;
    assert_eq!(scratch.store().await.traits().durability, Durability::Safe);
}

/// Notifications cannot come through a transaction-mode pooler: that is found out, and said.
#[tokio::test]
async fn pooler_is_recognised_by_what_does_not_arrive() {
    let scratch = Scratch::new().await;
    let pooler = PgBouncer::start(Postgres::shared().await, 3).await.unwrap();
    let through = scratch.url_on(&pooler.uri_of("postgres"), "");
    let store = PostgresStore::connect(&through).await.unwrap();
    assert_eq!(store.traits().watch, WatchSource::Absent);
    let Err(error) = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
    else {
        panic!("a watch that is told nothing")
    };
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    take(&store, &request("job", "a", seconds(60))).await;
    assert_eq!(scratch.store().await.traits().watch, WatchSource::Push);
    let off = PostgresStore::connect(&scratch.url("listen=off")).await.unwrap();
    assert_eq!(off.traits().watch, WatchSource::Absent);
}

/// Of several hosts, the one that answers; the password stays out of every place that is shown.
#[tokio::test]
async fn hosts_are_tried_in_turn() {
    let scratch = Scratch::new().await;
    let server = Postgres::shared().await;
    let nobody = free_port();
    let url = format!(
        "postgres://postgres:{SECRET}@127.0.0.1:{nobody},{}/postgres?schema={}",
        server.address(),
        scratch.schema
    );
    let store = PostgresStore::connect(&url).await.unwrap();
    take(&store, &request("job", "a", seconds(60))).await;
    let location = store.traits().location;
    assert!(
        location.contains(&nobody.to_string()) && !location.contains(SECRET),
        "{location}"
    );
}
