//! Statements that are prepared: where the server itself answers, and nowhere else.
use crate::common::{PATIENCE, Scratch, give_back, name, request, seconds, take};
use tenure_core::Acquire;
use tenure_postgres::PostgresStore;
use tenure_testkit::{PgBouncer, Postgres, eventually_async};

/// Has each write of a lease tell how many of Tenure's statements its own session has prepared.
const TELLING: &str = "
    CREATE TABLE {schema}.told (prepared bigint, session integer);
    CREATE FUNCTION {schema}.tell() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {schema}.told SELECT count(*), pg_backend_pid() FROM pg_prepared_statements
            WHERE statement LIKE '%pg_backend_pid()%';
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER tell AFTER UPDATE ON {schema}.leases FOR EACH ROW EXECUTE FUNCTION {schema}.tell()";

/// Takes the lease and gives it back.
async fn turn(store: &PostgresStore, asked: &mut Acquire) {
    let token = take(store, asked).await.token;
    give_back(store, asked, token).await;
    asked.attempt = asked.attempt.next();
}

/// How many statements a session had prepared at most.
async fn told(scratch: &Scratch) -> i64 {
    scratch
        .value("SELECT coalesce(max(prepared), 0) FROM {schema}.told")
        .await
}

/// Takes turns until a session has so many prepared.
async fn until_prepared(scratch: &Scratch, store: &PostgresStore, asked: Acquire, count: i64) {
    let asked = tokio::sync::Mutex::new(asked);
    eventually_async(PATIENCE, "a prepared statement", || async {
        turn(store, &mut *asked.lock().await).await;
        told(scratch).await == count
    })
    .await;
}

#[tokio::test]
async fn statements_that_are_asked_often_are_prepared_where_the_server_itself_answers() {
    let scratch = Scratch::new().await;
    scratch.sql(TELLING).await;
    let store = scratch.store().await;
    until_prepared(&scratch, &store, request("job", "holder", seconds(60)), 2).await;
}

/// What is encrypted is asked as well.
#[tokio::test]
async fn statements_are_prepared_also_where_the_connection_is_encrypted() {
    // It lets nobody look that does not encrypt; one with its certificate does.
    let strict = Postgres::with_encryption().await.unwrap();
    let folder = strict.root_certificate().parent().unwrap().display().to_string();
    let files = [
        format!("ssl_cert_file={folder}/server.crt"),
        format!("ssl_key_file={folder}/server.key"),
    ];
    let server = Postgres::with_settings(&["ssl=on", &files[0], &files[1]])
        .await
        .unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    scratch.sql(TELLING).await;
    let store = PostgresStore::connect(&scratch.url("sslmode=require"))
        .await
        .unwrap();
    until_prepared(&scratch, &store, request("job", "holder", seconds(60)), 2).await;
}

/// The next statement of the client is another session's there.
#[tokio::test]
async fn behind_a_pooler_nothing_is_prepared() {
    let scratch = Scratch::new().await;
    scratch.sql(TELLING).await;
    let pooler = PgBouncer::start(Postgres::shared().await, 3).await.unwrap();
    let url = scratch.url_on(&pooler.uri_of("postgres"), "listen=off");
    let store = PostgresStore::connect(&url).await.unwrap();
    let mut asked = request("job", "holder", seconds(60));
    for _ in 0..TURNS {
        turn(&store, &mut asked).await;
    }
    assert_eq!(told(&scratch).await, 0);
}

/// More than are needed where statements are prepared.
const TURNS: u32 = 50;

/// A set-up replaces functions, or makes them anew, under those who have prepared what calls them. Nobody is
/// refused for it.
#[tokio::test]
async fn a_set_up_under_prepared_statements_refuses_nobody() {
    let scratch = Scratch::new().await;
    scratch.sql(TELLING).await;
    let store = scratch.store().await;
    let mut asked = request("job", "holder", seconds(60));
    until_prepared(&scratch, &store, asked.clone(), 2).await;
    asked.name = name("another");
    // More often than the server plans a statement anew each time.
    for _ in 0..10 {
        turn(&store, &mut asked).await;
    }
    PostgresStore::init(&scratch.url("")).await.unwrap();
    turn(&store, &mut asked).await;
    scratch
        .sql(
            "DROP FUNCTION {schema}.take(text, text, text, bigint, bigint, text); \
             DROP FUNCTION {schema}.give_back(text, text, bigint, bigint)",
        )
        .await;
    PostgresStore::init(&scratch.url("")).await.unwrap();
    turn(&store, &mut asked).await;
    // Of another type than was prepared: it is asked as it stands.
    scratch
        .sql(
            "ALTER FUNCTION {schema}.take(text, text, text, bigint, bigint, text) RENAME TO inner_take; \
             CREATE FUNCTION {schema}.take(text, text, text, bigint, bigint, text) RETURNS varchar[] LANGUAGE sql AS \
             'SELECT {schema}.inner_take($1, $2, $3, $4, $5, $6)::varchar[]'",
        )
        .await;
    turn(&store, &mut asked).await;
    turn(&store, &mut asked).await;
}

/// Has the session of the next write forget all that it has prepared, as somebody's `DEALLOCATE` would.
const FORGETTING: &str = "
    TRUNCATE {schema}.told;
    CREATE TABLE {schema}.forgets AS SELECT 1 AS once;
    CREATE TABLE {schema}.forgot (session integer);
    CREATE FUNCTION {schema}.forget() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM {schema}.forgets;
        IF FOUND THEN
            EXECUTE 'DEALLOCATE ALL';
            INSERT INTO {schema}.forgot VALUES (pg_backend_pid());
            TRUNCATE {schema}.told;
        END IF;
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER tell_not AFTER UPDATE ON {schema}.leases FOR EACH ROW EXECUTE FUNCTION {schema}.forget()";

#[tokio::test]
async fn a_statement_that_the_session_has_forgotten_is_asked_as_it_stands() {
    let scratch = Scratch::new().await;
    scratch.sql(TELLING).await;
    let store = scratch.store().await;
    let mut asked = request("job", "holder", seconds(60));
    until_prepared(&scratch, &store, asked.clone(), 2).await;
    asked.name = name("another");
    turn(&store, &mut asked).await;
    scratch.sql(FORGETTING).await;
    // The very session is asked as before, and has them prepared again.
    let asked = tokio::sync::Mutex::new(asked);
    let judged = format!(
        "SELECT EXISTS (SELECT FROM {0}.told JOIN {0}.forgot USING (session) WHERE prepared = 2)",
        scratch.schema
    );
    let client = scratch.client().await;
    eventually_async(PATIENCE, "statements that are prepared again", || async {
        turn(&store, &mut *asked.lock().await).await;
        client.query_one(&judged, &[]).await.unwrap().get::<_, bool>(0)
    })
    .await;
}
