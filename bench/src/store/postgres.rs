//! PostgreSQL: the bare driver takes the lease with one prepared statement on the server's clock, and gives
//! it back with another, which also tells who waits.

use super::compare;
use tenure::postgres::PostgresStore;
use tenure_testkit::Postgres;
use tokio_postgres::{Client, NoTls, Statement};

pub async fn measure(rounds: u32) {
    let server = Postgres::start().await.expect("a PostgreSQL server");
    PostgresStore::init(&server.uri()).await.unwrap();
    let store = PostgresStore::connect(&server.uri()).await.unwrap();
    let bare = Bare::connect(&server.uri()).await;
    compare("PostgreSQL", rounds, &store, async |round| {
        bare.turn(round.into()).await
    })
    .await;
    let alike = Bare::connect_to_release_at_once(&server.uri()).await;
    let what = "PostgreSQL, whose bare release waits for no disk either";
    compare(what, rounds, &store, async |round| alike.turn(round.into()).await).await;
    let own = Own::connect(&server.uri()).await;
    let what = "PostgreSQL, Tenure's own functions called by the bare driver";
    compare(what, rounds, &store, async |round| own.turn(round.into()).await).await;
}

/// What the store asks, asked by the driver alone: the rest is the way to the store's own thread and back.
struct Own {
    client: Client,
    take: Statement,
    give_back: Statement,
}

impl Own {
    async fn connect(uri: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(uri, NoTls).await.unwrap();
        tokio::spawn(connection);
        let take = "SELECT tenure.take('own', 'bench', $1, $2, 30000, '')";
        let give_back = "SELECT tenure.give_back('own', $1, $2, $3)";
        Self {
            take: client.prepare(take).await.unwrap(),
            give_back: client.prepare(give_back).await.unwrap(),
            client,
        }
    }

    async fn turn(&self, attempt: i64) {
        let attempt = attempt + 1;
        let granted = self.client.query_one(&self.take, &[&INCARNATION, &attempt]).await;
        let granted: Vec<Option<String>> = granted.unwrap().get(0);
        assert_eq!(granted[0].as_deref(), Some("granted"));
        let token: i64 = granted[4].as_deref().unwrap().parse().unwrap();
        let released = self
            .client
            .query_one(&self.give_back, &[&INCARNATION, &token, &attempt])
            .await;
        let released: Vec<Option<String>> = released.unwrap().get(0);
        assert_eq!(released[0].as_deref(), Some("vacated"));
    }
}

const INCARNATION: &str = "00000000000000000000000000000007";

pub struct Bare {
    client: Client,
    take: Statement,
    vacate: Statement,
}

impl Bare {
    pub async fn connect(uri: &str) -> Self {
        Self::connect_with(uri, VACATE).await
    }

    /// As careful as the store, whose release need not survive a power cut: the lease ends by itself then.
    async fn connect_to_release_at_once(uri: &str) -> Self {
        let vacate = VACATE.replace(
            "SELECT pg_notify",
            "SELECT set_config('synchronous_commit', 'off', true), pg_notify",
        );
        Self::connect_with(uri, &vacate).await
    }

    async fn connect_with(uri: &str, vacate: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(uri, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(SET_UP).await.unwrap();
        Self {
            take: client.prepare(TAKE).await.unwrap(),
            vacate: client.prepare(vacate).await.unwrap(),
            client,
        }
    }

    pub async fn turn(&self, attempt: i64) {
        let taken = self.client.query_one(&self.take, &[&attempt]).await.unwrap();
        let token: i64 = taken.get(0);
        let vacated = self
            .client
            .query(&self.vacate, &[&token, &attempt])
            .await
            .unwrap();
        assert_eq!(vacated.len(), 1);
    }
}

const SET_UP: &str = "
    DROP TABLE IF EXISTS bare;
    CREATE TABLE bare (
        name text PRIMARY KEY, owner text, incarnation text, attempt bigint, token bigint, ttl_ms bigint,
        acquired_at timestamptz, expires_at timestamptz, released_at timestamptz
    );
    INSERT INTO bare (name, token, released_at) VALUES ('bare', 0, clock_timestamp())";

/// Server's clock, token, owner, attempt, expiry: what a lease cannot do without.
const TAKE: &str = "
    UPDATE bare SET owner = 'bench', incarnation = '7', attempt = $1,
        token = greatest(token + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint), ttl_ms = 30000,
        acquired_at = clock_timestamp(), expires_at = clock_timestamp() + interval '30 s', released_at = NULL
    WHERE name = 'bare' AND (released_at IS NOT NULL OR expires_at < clock_timestamp())
    RETURNING token, owner, expires_at - clock_timestamp()";

/// Of the very term, and tells who waits.
const VACATE: &str = "
    WITH vacated AS (
        UPDATE bare SET released_at = clock_timestamp(), expires_at = clock_timestamp()
        WHERE name = 'bare' AND incarnation = '7' AND token = $1 AND attempt = $2 RETURNING name
    )
    SELECT pg_notify('bare', name) FROM vacated";
