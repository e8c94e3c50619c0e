//! What the tests share: a collection of their own on a shared server, and ways beneath the store.

use mongodb::bson::{Document, doc};
use mongodb::{Client, Collection};
use std::time::Duration;
pub use tenure_conformance::asking::*;
use tenure_conformance::wire::bounded;
use tenure_core::{Acquire, Acquired, Grant, LeaseStore as _};
use tenure_mongodb::MongoStore;
use tenure_testkit::{ReplicaSet, eventually_async};

/// A collection that no other test has, removed when the test ends.
pub struct Scratch {
    pub uri: String,
    pub database: String,
}

impl Scratch {
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            database: format!("tenure-test-{:016x}", random_bits()),
        }
    }

    /// The store's URL, with these options added.
    pub fn url(&self, options: &str) -> String {
        with_database(&self.uri, &self.database, options)
    }

    pub async fn store(&self) -> MongoStore {
        MongoStore::connect(&self.url(""))
            .await
            .expect("the store connects")
    }

    /// A client of the test's own.
    pub async fn client(&self) -> Client {
        Client::with_uri_str(&self.uri)
            .await
            .expect("the test's own client connects")
    }

    pub async fn leases(&self) -> Collection<Document> {
        self.client()
            .await
            .database(&self.database)
            .collection("job_leases")
    }
}

/// Asks with the same attempt until it is granted, each time within the bound: where the ttl is short, or the
/// set elects, an acquisition on a machine that stands still is given up.
pub async fn persist(store: &MongoStore, asked: &Acquire) -> Grant {
    eventually_async(Duration::from_secs(90), "an acquisition", || async {
        match bounded("an acquisition", store.acquire(asked)).await {
            Ok(Acquired::Granted(grant)) => Ok(grant),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// Waits until a write to this collection has come upon another's, of a transaction that is open: the server
/// tries it again and again.
pub async fn until_a_write_waits(leases: &Collection<Document>) {
    let waiting = vec![
        doc! { "$currentOp": { "allUsers": true } },
        doc! { "$match": { "ns": leases.namespace().to_string(), "writeConflicts": { "$gt": 0 } } },
    ];
    let admin = leases.client().database("admin");
    let waits = || async {
        let mut found = admin.aggregate(waiting.clone()).await.expect("a look");
        found.advance().await.expect("an answer")
    };
    eventually_async(WAITING_MAX, "a write that waits", waits).await;
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let (uri, database) = (self.uri.clone(), self.database.clone());
        // On a thread of its own: the test's runtime may be single-threaded, and is busy dropping this.
        let cleaning = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a test can start a runtime");
            runtime.block_on(async {
                let dropped = async {
                    let client = Client::with_uri_str(&uri).await?;
                    client.database(&database).drop().await
                };
                let _late = tokio::time::timeout(CLEANING_TIME_MAX, dropped).await;
            });
        });
        let _panicked = cleaning.join();
    }
}

/// A server that a test has killed keeps its scratch database: it goes with the server's own folder.
const CLEANING_TIME_MAX: Duration = Duration::from_secs(5);

/// A write comes upon another's within this, on a loaded machine.
const WAITING_MAX: Duration = Duration::from_secs(20);

/// Puts a database and options into a connection string.
pub fn with_database(uri: &str, database: &str, options: &str) -> String {
    let (address, query) = uri.split_once('?').unwrap_or((uri, ""));
    let address = address.trim_end_matches('/');
    let joined: Vec<&str> = [query, options]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let query = joined.join("&");
    let auth = if address.contains('@') && !query.contains("authSource") {
        "authSource=admin"
    } else {
        ""
    };
    let query: Vec<&str> = [query.as_str(), auth]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    match query.is_empty() {
        true => format!("{address}/{database}"),
        false => format!("{address}/{database}?{}", query.join("&")),
    }
}

/// What the README tells to grant.
pub const LEAST_ROLE: [&str; 5] = ["find", "insert", "update", "changeStream", "listIndexes"];

/// The URL of the database "bank" for a user of the set who may do this to its leases, and nothing else.
pub async fn who_may(set: &ReplicaSet, password: &str, actions: &[&str]) -> String {
    let administrator = Client::with_uri_str(set.uri()).await.expect("a client");
    let role = doc! {
        "createRole": "tenure",
        "privileges": [{
            "resource": { "db": "bank", "collection": "job_leases" },
            "actions": actions,
        }],
        "roles": [],
    };
    let made = administrator.database("admin").run_command(role).await;
    made.expect("the role");
    let user = set.create_user("service", password, &[("tenure", "admin")]);
    with_database(&set.uri_as(&user.await.expect("the user")), "bank", "")
}

/// The whole record as the server keeps it.
pub async fn raw(leases: &Collection<Document>, key: &str) -> Option<Document> {
    leases
        .find_one(doc! { "_id": key })
        .await
        .expect("the test can read")
}
