//! MariaDB: the bare driver takes the lease with one prepared statement on the server's clock, and gives it
//! back with another.

use super::compare;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Row, Statement};
use tenure::mysql::MysqlStore;
use tenure_testkit::Mariadb;

pub async fn measure(rounds: u32) {
    let server = Mariadb::start().await.expect("a MariaDB server");
    server.execute("CREATE DATABASE jobs").await.unwrap();
    let uri = server.uri_of("jobs");
    MysqlStore::init(&uri).await.unwrap();
    let store = MysqlStore::connect(&uri).await.unwrap();
    let mut bare = Bare::connect(&uri).await;
    compare("MariaDB", rounds, &store, async |round| bare.turn(round).await).await;
    let mut own = Own::connect(&uri).await;
    let what = "MariaDB, Tenure's own statements sent by the bare driver";
    compare(what, rounds, &store, async |round| own.turn(round).await).await;
}

/// What the store asks, asked by the driver alone: the rest is the way to the store's own thread and back.
struct Own {
    conn: Conn,
    take: Statement,
    vacate: Statement,
}

impl Own {
    async fn connect(uri: &str) -> Self {
        let mut conn = Mariadb::client(uri).await.unwrap();
        let [take, vacate] = tenure::mysql::short_way();
        let (take, vacate) = (conn.prep(take).await.unwrap(), conn.prep(vacate).await.unwrap());
        Self { conn, take, vacate }
    }

    async fn turn(&mut self, attempt: u32) {
        let attempt = attempt + 1;
        let asked = ("own", "bench", INCARNATION, attempt, 30_000, 30_000, "");
        let granted: Option<Row> = self.conn.exec_first(&self.take, asked).await.unwrap();
        let token: u64 = granted.and_then(|row| row.get(0)).expect("the lease is free");
        let asked = ("own", INCARNATION, token, attempt);
        self.conn.exec_drop(&self.vacate, asked).await.unwrap();
        assert_eq!(self.conn.affected_rows(), 1);
    }
}

const INCARNATION: &str = "00000000000000000000000000000007";

pub struct Bare(Conn);

impl Bare {
    pub async fn connect(uri: &str) -> Self {
        let mut conn = Mariadb::client(uri).await.unwrap();
        for statement in SET_UP {
            conn.query_drop(statement).await.unwrap();
        }
        Self(conn)
    }

    pub async fn turn(&mut self, attempt: u32) {
        // Prepared the first time.
        self.0.exec_drop(TAKE, (attempt,)).await.unwrap();
        let token = self.0.last_insert_id().expect("the lease is free");
        self.0.exec_drop(VACATE, (token, attempt)).await.unwrap();
        assert_eq!(self.0.affected_rows(), 1);
    }
}

const SET_UP: [&str; 2] = [
    "CREATE TABLE bare (
        name VARCHAR(255) PRIMARY KEY, owner VARCHAR(255), incarnation VARCHAR(32), attempt BIGINT, token BIGINT, ttl_ms BIGINT,
        acquired_us BIGINT, expires_us BIGINT, released_us BIGINT
    ) ENGINE = InnoDB",
    "INSERT INTO bare (name, token, released_us) VALUES ('bare', 0, 1)",
];

/// Server's clock, token, owner, attempt, expiry: what a lease cannot do without.
const TAKE: &str = "
    UPDATE bare SET owner = 'bench', incarnation = '7', attempt = ?,
        token = LAST_INSERT_ID(GREATEST(token + 1, FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000))), ttl_ms = 30000,
        acquired_us = UNIX_TIMESTAMP(SYSDATE(6)) * 1000000, expires_us = (UNIX_TIMESTAMP(SYSDATE(6)) + 30) * 1000000,
        released_us = NULL
    WHERE name = 'bare' AND (released_us IS NOT NULL OR expires_us < UNIX_TIMESTAMP(SYSDATE(6)) * 1000000)";

/// Of the very term.
const VACATE: &str = "
    UPDATE bare SET released_us = UNIX_TIMESTAMP(SYSDATE(6)) * 1000000, expires_us = released_us
    WHERE name = 'bare' AND incarnation = '7' AND token = ? AND attempt = ?";
