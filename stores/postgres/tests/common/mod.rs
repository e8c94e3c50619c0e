//! What the tests share: a schema of their own on a shared server, and ways beneath the store.

use std::time::Duration;
pub use tenure_conformance::asking::*;
use tenure_postgres::PostgresStore;
use tenure_testkit::Postgres;
use tokio_postgres::Client;
use tokio_postgres::types::FromSql;

/// Long, as a loaded machine may need it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A schema that no other test has. It goes with the server, when the tests end.
pub struct Scratch {
    pub uri: String,
    pub schema: String,
}

impl Scratch {
    /// A schema that is set up, on the shared server.
    pub async fn new() -> Self {
        Self::on(&Postgres::shared().await.uri()).await
    }

    /// A schema that is set up, in the database at `uri`.
    pub async fn on(uri: &str) -> Self {
        let scratch = Self::bare(uri);
        PostgresStore::init(&scratch.url(""))
            .await
            .expect("the schema is set up");
        scratch
    }

    /// The name of a schema that does not exist yet.
    pub fn bare(uri: &str) -> Self {
        Self {
            uri: uri.to_owned(),
            schema: format!("test_{:016x}", random_bits()),
        }
    }

    /// The store's URL, with these options added.
    pub fn url(&self, options: &str) -> String {
        self.url_on(&self.uri, options)
    }

    /// The same at another address of the same server.
    pub fn url_on(&self, uri: &str, options: &str) -> String {
        let more = if options.is_empty() {
            String::new()
        } else {
            format!("&{options}")
        };
        format!("{uri}?schema={}{more}", self.schema)
    }

    pub async fn store(&self) -> PostgresStore {
        PostgresStore::connect(&self.url(""))
            .await
            .expect("the store connects")
    }

    /// A client of the test's own.
    pub async fn client(&self) -> Client {
        Postgres::client(&self.uri)
            .await
            .expect("the test's own client connects")
    }

    /// The only value that a question of the test's own is answered with.
    pub async fn value<T: for<'a> FromSql<'a>>(&self, asked: &str) -> T {
        let asked = asked.replace("{schema}", &self.schema);
        self.client()
            .await
            .query_one(&asked, &[])
            .await
            .expect("one row")
            .get(0)
    }

    pub async fn sql(&self, statements: &str) {
        let statements = statements.replace("{schema}", &self.schema);
        Postgres::execute_at(&self.uri, &statements)
            .await
            .expect("the test's own statements run");
    }
}
