//! What the tests share: a database of their own on a shared server, and ways beneath the store.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Transaction, TxOpts};
use std::time::Duration;
pub use tenure_conformance::asking::*;
use tenure_core::{Acquire, FencingToken, LeaseStore as _, Released};
use tenure_mysql::MysqlStore;
use tenure_testkit::{FaultProxy, Mariadb, SqlFamily};

/// Long, as a loaded machine may need it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Settings of a server whose sessions have no short way: each request is a procedure's, as in MySQL in any
/// case.
pub fn by_procedures() -> &'static [&'static str] {
    match family() {
        SqlFamily::Mariadb => {
            &["sql-mode=STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,SIMULTANEOUS_ASSIGNMENT"]
        }
        SqlFamily::Mysql => &[],
    }
}

/// A database that no other test has. It goes with the server, when the tests end.
pub struct Scratch {
    pub address: String,
    pub database: String,
}

impl Scratch {
    /// A database that is set up, on the shared server.
    pub async fn new() -> Self {
        Self::on(&Mariadb::shared().await.address()).await
    }

    /// A database that is set up, on the server at `address`.
    pub async fn on(address: &str) -> Self {
        let scratch = Self::bare(address).await;
        MysqlStore::init(&scratch.url())
            .await
            .expect("the tables are made");
        scratch
    }

    /// An empty database.
    pub async fn bare(address: &str) -> Self {
        let scratch = Self {
            address: address.to_owned(),
            database: format!("test_{:016x}", random_bits()),
        };
        let create = format!("CREATE DATABASE {}", scratch.database);
        Mariadb::execute_at(&format!("mysql://root@{address}/mysql"), &create)
            .await
            .expect("a database is made");
        scratch
    }

    /// The store's URL.
    pub fn url(&self) -> String {
        self.url_at("root", &self.address)
    }

    /// The same with these credentials, at another address of the same server.
    pub fn url_at(&self, credentials: &str, address: &str) -> String {
        format!("mysql://{credentials}@{address}/{}", self.database)
    }

    pub async fn store(&self) -> MysqlStore {
        MysqlStore::connect(&self.url())
            .await
            .expect("the store connects")
    }

    /// A client of the test's own.
    pub async fn client(&self) -> Conn {
        Mariadb::client(&self.url())
            .await
            .expect("the test's own client connects")
    }

    pub async fn sql(&self, statements: &str) {
        Mariadb::execute_at(&self.url(), statements)
            .await
            .expect("the test's own statements run");
    }
}

/// Statements that put procedures in the place of others, in words that the server knows: MySQL has no moment
/// without one only for who does not use it.
pub fn replacing(statements: &str) -> String {
    match family() {
        SqlFamily::Mariadb => statements.to_owned(),
        SqlFamily::Mysql => {
            let mut parts = statements.split("CREATE OR REPLACE PROCEDURE ");
            let mut made = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let (name, _) = part.split_once('(').expect("its parameters");
                made.push_str(&format!("DROP PROCEDURE {name}; CREATE PROCEDURE {part}"));
            }
            made
        }
    }
}

/// Whose server the tests run.
pub fn family() -> SqlFamily {
    SqlFamily::installed().expect("a server is installed")
}

/// A proxy in front of the shared server.
pub async fn proxied() -> (FaultProxy, Scratch, MysqlStore) {
    let server = Mariadb::shared().await;
    let proxy = FaultProxy::mysql(server.address()).expect("a proxy");
    let scratch = Scratch::new().await;
    let url = scratch.url_at("root", &proxy.address().to_string());
    let store = MysqlStore::connect(&url).await.expect("the store connects");
    (proxy, scratch, store)
}

/// The same candidate's next attempt.
pub fn next(request: &Acquire) -> Acquire {
    Acquire {
        attempt: request.attempt.next(),
        ..request.clone()
    }
}

pub async fn give_back(store: &MysqlStore, request: &Acquire, token: FencingToken) {
    let released = store.release(&[giving_back(request, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
}

/// A store that has taken a lease and given it back.
pub async fn warm(store: MysqlStore) -> MysqlStore {
    let asked = request("warm", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    give_back(&store, &asked, token).await;
    store
}

/// Locks the record of this lease until the transaction ends.
pub async fn row_locked<'client>(client: &'client mut Conn, lease: &str) -> Transaction<'client> {
    let mut transaction = client.start_transaction(TxOpts::default()).await.unwrap();
    let look = format!("SELECT 1 FROM tenure_leases WHERE name = '{lease}' FOR UPDATE");
    transaction.query_drop(look).await.unwrap();
    transaction
}
