//! The suite that every store passes, with one client at the server and one behind a transaction-mode pooler.

use crate::common::Scratch;
use std::sync::Arc;
use tenure_conformance::{Corruption, Fixture, Hooked, Subject};
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Finding, Interest, Lease, LeaseName, LeasePage, LeasePurge,
    LeaseStore, Page, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits, Watch, Work,
};
use tenure_postgres::PostgresStore;
use tenure_testkit::{PgBouncer, Postgres};
use tokio::sync::OnceCell;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// The errors that say that a value does not fit its column, or the table's constraints: of its text, its
/// range, its time, its absence, a check.
const UNFIT: [&str; 5] = ["22P02", "22003", "22007", "23502", "23514"];

struct PostgresSubject {
    store: Arc<PostgresStore>,
    other: Arc<ThroughPooler>,
    client: Client,
    table: String,
}

/// All cases share a table, as they use names of their own.
async fn scratch() -> &'static Scratch {
    static SCRATCH: OnceCell<Scratch> = OnceCell::const_new();
    SCRATCH.get_or_init(Scratch::new).await
}

impl PostgresSubject {
    async fn change(&self, name: &LeaseName, assignment: &str) -> Result<u64, tokio_postgres::Error> {
        let statement = format!("UPDATE {} SET {assignment} WHERE name = $1", self.table);
        self.client.execute(&statement, &[&name.as_str()]).await
    }
}

impl Subject for PostgresSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.store) as Arc<dyn LeaseStore>
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.other) as Arc<dyn LeaseStore>
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async {
            let asked = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
            let row = self
                .client
                .query_one(asked, &[])
                .await
                .expect("the server tells its time");
            Hooked::Done(u64::try_from(row.get::<_, i64>(0)).expect("after 1970"))
        })
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        Box::pin(async {
            let statement = format!("SELECT lease::text FROM {} lease WHERE name = $1", self.table);
            let row = self.client.query_opt(&statement, &[&name.as_str()]).await;
            Hooked::Done(row.expect("the test can read").map(|row| row.get(0)))
        })
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        if corruption == Corruption::HolderIsNumber {
            return Box::pin(async {
                Hooked::Unsupported("a text column makes a valid text of every number")
            });
        }
        let long_note = format!("note = '{}'", Corruption::long_note());
        let assignment = match corruption {
            Corruption::NegativeToken => "token = -7",
            Corruption::ZeroToken => "token = 0",
            Corruption::HugeToken => "token = 1e300",
            Corruption::TokenBeyondTheLast => "token = 253402300800000",
            Corruption::TokenIsText => "token = 'seven'",
            Corruption::NoToken => "token = NULL",
            Corruption::HolderIsNumber => unreachable!("it was declared above"),
            Corruption::HolderIsMalformed => "owner = E'a\\x07b'",
            Corruption::NoHolder => "owner = NULL",
            Corruption::IncarnationIsMalformed => "incarnation = 'not-an-incarnation'",
            Corruption::NegativeAttempt => "attempt = -1",
            Corruption::AttemptIsText => "attempt = 'first'",
            Corruption::ExpiryIsText => "expires_at = 'the day after'",
            Corruption::ExpiryFarOff => "expires_at = to_timestamp(253402300799.999)",
            Corruption::NoExpiry => "expires_at = NULL",
            Corruption::ZeroTtl => "ttl_ms = 0",
            Corruption::TtlIsText => "ttl_ms = 'long'",
            Corruption::Alien => "owner = NULL, token = NULL, incarnation = NULL, expires_at = NULL",
            Corruption::LongNote => &long_note,
            Corruption::LastToken => "token = 253402300799999",
        }
        .to_owned();
        Box::pin(async move {
            match self.change(name, &assignment).await {
                Ok(1) => Hooked::Done(()),
                Ok(changed) => panic!("{changed} records changed; the record to damage exists"),
                // The refusal of such a value, and not of the statement or of who sends it.
                Err(error) if error.code().is_some_and(|code| UNFIT.contains(&code.code())) => {
                    Hooked::Unsupported("the column's type, or the table's constraint, refuses it")
                }
                Err(error) => panic!("the test can write: {error}"),
            }
        })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            let statement = format!(
                "INSERT INTO {} (name, owner, incarnation, token, attempt, terms, ttl_ms, created_at, acquired_at, expires_at, \
                 note) VALUES ($1::text, 'a', repeat('a', 32), 1, 1, 1, 1000, now(), now(), now(), '')",
                self.table
            );
            let refused = self.client.execute(&statement, &[&key]).await;
            let refused = refused.expect_err("the name's type admits names alone");
            assert_eq!(refused.code().map(SqlState::code), Some("23514"), "{refused}");
            Hooked::Unsupported("the column's type refuses it")
        })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        Box::pin(async {
            let statement = format!("DELETE FROM {} WHERE name = $1", self.table);
            let deleted = self.client.execute(&statement, &[&name.as_str()]).await;
            assert_eq!(deleted.expect("the test can write"), 1);
            Hooked::Done(())
        })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::clone(&self.store) as Arc<dyn LeasePurge>)
    }
}

async fn pooler() -> &'static PgBouncer {
    static POOLER: OnceCell<PgBouncer> = OnceCell::const_new();
    let start = async || {
        let server = Postgres::shared().await;
        PgBouncer::start(server, 8).await.expect("the pooler starts")
    };
    POOLER.get_or_init(start).await
}

/// A client whose requests go through the pooler, where each may meet another server connection, and whose
/// watches go round it: what the README advises.
struct ThroughPooler {
    pooled: PostgresStore,
    direct: PostgresStore,
}

impl LeaseStore for ThroughPooler {
    fn traits(&self) -> StoreTraits {
        self.direct.traits()
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        self.pooled.acquire(request)
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        self.pooled.renew(requests)
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        self.pooled.release(requests)
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        self.pooled.ask(request)
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        self.pooled.get(name)
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        self.pooled.list(page)
    }

    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        self.direct.watch(scope, interest)
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        self.pooled.examine()
    }

    fn run_beside(&self, work: Work) -> Result<(), Work> {
        self.pooled.run_beside(work)
    }
}

async fn fixture() -> Fixture {
    subject(scratch().await).await
}

async fn subject(scratch: &Scratch) -> Fixture {
    let (direct, pooled) = (scratch.url(""), pooler().await.uri_of("postgres"));
    let pooled = scratch.url_on(&pooled, "listen=off");
    let connect = async |url: &str| PostgresStore::connect(url).await.expect("the store connects");
    Fixture::new(PostgresSubject {
        store: Arc::new(connect(&direct).await),
        other: Arc::new(ThroughPooler {
            pooled: connect(&pooled).await,
            direct: connect(&direct).await,
        }),
        client: scratch.client().await,
        table: format!("{}.leases", scratch.schema),
    })
}

tenure_conformance::suite!(fixture);

/// Where none of the functions answers that decide of one lease in one statement: the others take and give
/// back what these leave to them, and in an earlier set-up all.
mod by_the_longer_functions {
    use crate::common::Scratch;
    use tokio::sync::OnceCell;

    async fn scratch() -> &'static Scratch {
        static SCRATCH: OnceCell<Scratch> = OnceCell::const_new();
        let without = || async {
            let scratch = Scratch::new().await;
            let drop = "DROP FUNCTION {schema}.take(text, text, text, bigint, bigint, text); \
                        DROP FUNCTION {schema}.give_back(text, text, bigint, bigint)";
            scratch.sql(drop).await;
            scratch
        };
        SCRATCH.get_or_init(without).await
    }

    async fn fixture() -> tenure_conformance::Fixture {
        super::subject(scratch().await).await
    }

    tenure_conformance::suite!(fixture);
}
