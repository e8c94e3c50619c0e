//! The suite that every store passes.

use crate::common::{self, Scratch};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Row};
use std::sync::Arc;
use tenure_conformance::{Corruption, Fixture, Hooked, Subject};
use tenure_core::{Answer, LeaseName, LeasePurge, LeaseStore};
use tenure_mysql::MysqlStore;
use tenure_testkit::Mariadb;
use tokio::sync::{Mutex, OnceCell};

/// The errors that say that a value does not fit its column, or the table's constraints: of its absence, its
/// range, its text, its length, and a check, of MariaDB and of MySQL.
const UNFIT: [u16; 6] = [1048, 1264, 1366, 1406, 4025, 3819];

struct MysqlSubject {
    store: Arc<MysqlStore>,
    other: Arc<MysqlStore>,
    client: Mutex<Conn>,
}

/// All cases share the tables, as they use names of their own.
async fn scratch() -> &'static Scratch {
    static SCRATCH: OnceCell<Scratch> = OnceCell::const_new();
    SCRATCH.get_or_init(Scratch::new).await
}

impl MysqlSubject {
    async fn change(&self, statement: &str, name: &LeaseName) -> Result<u64, mysql_async::Error> {
        let mut client = self.client.lock().await;
        client.exec_drop(statement, (name.as_str(),)).await?;
        Ok(client.affected_rows())
    }
}

impl Subject for MysqlSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.store) as Arc<dyn LeaseStore>
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.other) as Arc<dyn LeaseStore>
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async {
            let asked = "SELECT FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000)";
            let now: Option<u64> = self
                .client
                .lock()
                .await
                .query_first(asked)
                .await
                .expect("the server tells its time");
            Hooked::Done(now.expect("a time"))
        })
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        Box::pin(async {
            let statement = "SELECT * FROM tenure_leases WHERE name = ?";
            let mut client = self.client.lock().await;
            let row: Option<Row> = client
                .exec_first(statement, (name.as_str(),))
                .await
                .expect("the test can read");
            Hooked::Done(row.map(|row| format!("{:?}", row.unwrap())))
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
            Corruption::HolderIsMalformed => "owner = X'610762'",
            Corruption::NoHolder => "owner = NULL",
            Corruption::IncarnationIsMalformed => "incarnation = 'not-an-incarnation'",
            Corruption::NegativeAttempt => "attempt = -1",
            Corruption::AttemptIsText => "attempt = 'first'",
            Corruption::ExpiryIsText => "expires_us = 'the day after'",
            Corruption::ExpiryFarOff => "expires_us = 253402300799999000",
            Corruption::NoExpiry => "expires_us = NULL",
            Corruption::ZeroTtl => "ttl_ms = 0",
            Corruption::TtlIsText => "ttl_ms = 'long'",
            Corruption::Alien => "owner = NULL, token = NULL, incarnation = NULL, expires_us = NULL",
            Corruption::LongNote => &long_note,
            Corruption::LastToken => "token = 253402300799999",
        }
        .to_owned();
        Box::pin(async move {
            let statement = format!("UPDATE tenure_leases SET {assignment} WHERE name = ?");
            match self.change(&statement, name).await {
                Ok(1) => Hooked::Done(()),
                Ok(changed) => panic!("{changed} records changed; the record to damage exists"),
                // The refusal of such a value, and not of the statement or of who sends it.
                Err(mysql_async::Error::Server(refused)) if UNFIT.contains(&refused.code) => {
                    Hooked::Unsupported("the column's type, or the table's constraint, refuses it")
                }
                Err(error) => panic!("the test can write: {error}"),
            }
        })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            let statement = "INSERT INTO tenure_leases (name, owner, incarnation, token, attempt, terms, ttl_ms, created_us, \
                             acquired_us, expires_us, note) VALUES (?, 'a', REPEAT('a', 32), 1, 1, 1, 1000, 1, 1, 1, '')";
            let mut client = self.client.lock().await;
            match client.exec_drop(statement, (key,)).await {
                Err(mysql_async::Error::Server(refused)) if [4025, 3819].contains(&refused.code) => {
                    Hooked::Unsupported("the table's constraint refuses it")
                }
                answer => panic!("the table admits names alone: {answer:?}"),
            }
        })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        Box::pin(async {
            let deleted = self
                .change("DELETE FROM tenure_leases WHERE name = ?", name)
                .await;
            assert_eq!(deleted.expect("the test can write"), 1);
            Hooked::Done(())
        })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::clone(&self.store) as Arc<dyn LeasePurge>)
    }
}

/// The same on a server where every request is a procedure's.
async fn scratch_by_procedures() -> &'static Scratch {
    static SCRATCH: OnceCell<(Mariadb, Scratch)> = OnceCell::const_new();
    let both = SCRATCH.get_or_init(|| async {
        let mut settings = vec!["innodb-flush-log-at-trx-commit=0"];
        settings.extend(common::by_procedures());
        let server = Mariadb::with_settings(&settings)
            .await
            .expect("the server starts");
        let scratch = Scratch::on(&server.address()).await;
        (server, scratch)
    });
    &both.await.1
}

async fn fixture() -> Fixture {
    subject(scratch().await).await
}

async fn subject(scratch: &Scratch) -> Fixture {
    Fixture::new(MysqlSubject {
        store: Arc::new(scratch.store().await),
        other: Arc::new(scratch.store().await),
        client: Mutex::new(scratch.client().await),
    })
}

tenure_conformance::suite!(fixture);

/// Where there is no short way.
mod by_procedures {
    async fn fixture() -> tenure_conformance::Fixture {
        super::subject(super::scratch_by_procedures().await).await
    }

    tenure_conformance::suite!(fixture);
}
