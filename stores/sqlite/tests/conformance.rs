//! The suite that every store passes, on a real file of each case's own.

use crate::common::Scratch;
use std::fmt::Write;
use std::sync::Arc;
use std::time::SystemTime;
use tenure_conformance::{Corruption, Fixture, Hooked, Subject};
use tenure_core::{Answer, LeaseName, LeasePurge, LeaseStore};
use tenure_sqlite::SqliteStore;

/// The table as another hand might rebuild it: no types, no NOT NULL. The real one is STRICT and refuses most
/// of the suite's damage; without it the store must still not believe what it reads.
const LOOSE: &str = "
    BEGIN IMMEDIATE;
    CREATE TABLE loose (name PRIMARY KEY, owner, incarnation, token, attempt, terms, ttl_ms, boot_id,
        acquired_ns, renewed_ns, expires_ns, released, wish, note, version, created_at, acquired_at,
        last_renewed_at) WITHOUT ROWID;
    INSERT INTO loose SELECT * FROM lease;
    DROP TABLE lease;
    ALTER TABLE loose RENAME TO lease;
    COMMIT;";

struct SqliteSubject {
    // Each client has its handle. Before the directory, which goes last.
    store: Arc<SqliteStore>,
    other: Arc<dyn LeaseStore>,
    scratch: Scratch,
}

async fn fixture() -> Fixture {
    let scratch = Scratch::new();
    Fixture::new(SqliteSubject {
        store: Arc::new(scratch.open()),
        other: Arc::new(scratch.open()),
        scratch,
    })
}

impl Subject for SqliteSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.store) as Arc<dyn LeaseStore>
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.other)
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            Hooked::Done(u64::try_from(since.as_millis()).unwrap())
        })
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        Box::pin(async {
            let connection = self.scratch.raw();
            let mut statement = connection.prepare("SELECT * FROM lease WHERE name = ?1").unwrap();
            let columns = statement.column_count();
            let mut rows = statement.query([name.as_str()]).unwrap();
            Hooked::Done(rows.next().unwrap().map(|row| {
                (0..columns).fold(String::new(), |mut text, column| {
                    write!(text, "{:?};", row.get_ref(column).unwrap()).unwrap();
                    text
                })
            }))
        })
    }

    /// It counts from the boot.
    fn clock_may_be_set_back(&self) -> bool {
        false
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        let long_note = format!("note = '{}'", Corruption::long_note());
        let damage = match corruption {
            Corruption::NegativeToken => "token = -7",
            Corruption::ZeroToken => "token = 0",
            Corruption::HugeToken => "token = 1e300",
            Corruption::TokenBeyondTheLast => "token = 253402300800000",
            Corruption::TokenIsText => "token = 'seven'",
            Corruption::NoToken => "token = NULL",
            Corruption::HolderIsNumber => "owner = 7",
            Corruption::HolderIsMalformed => "owner = 'a' || char(7) || 'b'",
            Corruption::NoHolder => "owner = NULL",
            Corruption::IncarnationIsMalformed => "incarnation = 'not-an-incarnation'",
            Corruption::NegativeAttempt => "attempt = -1",
            Corruption::AttemptIsText => "attempt = 'first'",
            Corruption::ExpiryIsText => "expires_ns = 'tomorrow'",
            Corruption::ExpiryFarOff => "expires_ns = 9223372036854775807",
            Corruption::NoExpiry => "expires_ns = NULL",
            Corruption::ZeroTtl => "ttl_ms = 0",
            Corruption::TtlIsText => "ttl_ms = 'long'",
            Corruption::Alien => {
                "owner = NULL, incarnation = NULL, token = NULL, attempt = NULL, terms = NULL, ttl_ms = NULL, \
                 boot_id = NULL, acquired_ns = NULL, renewed_ns = NULL, expires_ns = NULL, released = NULL, \
                 wish = NULL, note = NULL, version = NULL"
            }
            Corruption::LongNote => &long_note,
            Corruption::LastToken => "token = 253402300799999",
        }
        .to_owned();
        Box::pin(async move {
            self.scratch.sql(LOOSE);
            let changed = self
                .scratch
                .raw()
                .execute(
                    &format!("UPDATE lease SET {damage} WHERE name = ?1"),
                    [name.as_str()],
                )
                .unwrap();
            assert_eq!(changed, 1, "a case damages a record that exists");
            Hooked::Done(())
        })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            let statement = "INSERT INTO lease VALUES (?1, 'a', 'b', 1, 1, 1, 1000, 'c', 1, 1, 1, 0, '', '', 1, '', '', '')";
            let connection = self.scratch.raw();
            assert_eq!(connection.execute(statement, [key]).unwrap(), 1);
            Hooked::Done(())
        })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        Box::pin(async {
            let connection = self.scratch.raw();
            connection
                .execute("DELETE FROM lease WHERE name = ?1", [name.as_str()])
                .unwrap();
            Hooked::Done(())
        })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::clone(&self.store) as Arc<dyn LeasePurge>)
    }
}

tenure_conformance::suite!(fixture);
