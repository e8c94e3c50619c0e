//! MariaDB: the bare driver takes the lease with one prepared statement on the server's clock, and gives it back with
//! another.

use super::compare;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Row};
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
    let mut own = Own(Mariadb::client(&uri).await.unwrap());
    let what = "MariaDB, Tenure's own procedures called by the bare driver";
    compare(what, rounds, &store, async |round| own.turn(round).await).await;
}

/// What the store asks, asked by the driver alone: the rest is the way to the store's own thread and back.
struct Own(Conn);

impl Own {
    async fn turn(&mut self, attempt: u32) {
        let attempt = attempt + 1;
        let asked = format!("CALL tenure_acquire_1('own', 'bench', '{INCARNATION}', {attempt}, 30000, '')");
        let granted: Row = self.0.query_first(asked).await.unwrap().expect("an answer");
        assert_eq!(granted.get::<String, _>(0).as_deref(), Some("granted"));
        let token: u64 = granted.get(4).expect("a token");
        let asked = format!("CALL tenure_release_1('[[\"6f776e\",\"{INCARNATION}\",{token},{attempt}]]')");
        let released: Row = self.0.query_first(asked).await.unwrap().expect("an answer");
        assert_eq!(released.get::<String, _>(1).as_deref(), Some("vacated"));
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
