//! Reading one row, and what goes with it.

use crate::clock::{BootClock, Reading};
use crate::record::{Record, record_columns};
use crate::sighting;
use crate::trouble::Trouble;
use rusqlite::Connection;
use tenure_core::{Lease, LeaseName, Moment};

/// A record, and a clock that was read after it.
pub(crate) struct Seen<'a> {
    pub(crate) record: Option<Record>,
    pub(crate) clock: Reading<'a>,
    /// For a record of another boot: since when this boot has seen it.
    pub(crate) first_seen: Option<Moment>,
}

/// Looks at one lease.
///
/// The order matters: a clock that is read after the row is not behind any clock that the row was written by,
/// and inside a write transaction it cannot be older than the lock.
pub(crate) fn at<'a>(
    connection: &Connection,
    clock: &'a BootClock,
    name: &LeaseName,
) -> Result<Seen<'a>, Trouble> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        record_columns!(),
        " FROM lease WHERE name = ?1"
    ))?;
    let mut rows = statement.query([name.as_str()])?;
    let record = match rows.next()? {
        Some(row) => Some(Record::read(row)?),
        None => None,
    };
    let clock = clock.read();
    let first_seen = match &record {
        Some(record) => sighting::first_seen(connection, record, clock)?,
        None => None,
    };
    Ok(Seen {
        record,
        clock,
        first_seen,
    })
}

impl Seen<'_> {
    /// Whether the record is of another boot and nobody of this one has noted it yet.
    pub(crate) fn is_unnoted(&self) -> bool {
        let unnoted = |record| sighting::is_unnoted(record, self.clock, self.first_seen);
        self.record.as_ref().is_some_and(unnoted)
    }

    /// As the contract shows it.
    pub(crate) fn into_lease(self) -> Option<Lease> {
        self.record
            .map(|record| record.into_lease(self.clock, self.first_seen))
    }
}
