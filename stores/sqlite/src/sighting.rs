//! Records of other boots: since when this boot has seen them unchanged.
//!
//! Kept in the file, so that processes that live shorter than the ttl (cron with `--no-wait`) wait together.

use crate::clock::{BootClock, Reading};
use crate::look;
use crate::record::{Era, Record, stored};
use crate::transaction;
use crate::trouble::Trouble;
use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::{LeaseName, Moment};

/// When this boot first saw this very version of `record`; `None` for a record of this boot, before the
/// first sighting was noted, and for one noted in the future, which no clock of ours wrote.
pub(crate) fn first_seen(
    connection: &Connection,
    record: &Record,
    clock: Reading<'_>,
) -> Result<Option<Moment>, Trouble> {
    if record.released || record.era(clock) == Era::Ours {
        return Ok(None);
    }
    let seen: Option<i64> = connection
        .prepare_cached(
            "SELECT first_seen_ns FROM sighting WHERE name = ?1 AND observer_boot_id = ?2 \
             AND record_boot_id = ?3 AND record_token = ?4 AND record_version = ?5",
        )?
        .query_row(
            params![
                record.name.as_str(),
                clock.boot_id,
                record.boot_id,
                record.token.signed(),
                record.version
            ],
            |row| row.get(0),
        )
        .optional()?;
    Ok(seen
        .and_then(|nanos| u64::try_from(nanos).ok())
        .map(Moment::from_nanos)
        .filter(|seen| *seen <= clock.now))
}

/// Whether the record is of another boot and nobody of this one has noted it yet.
pub(crate) fn is_unnoted(record: &Record, clock: Reading<'_>, first_seen: Option<Moment>) -> bool {
    first_seen.is_none() && !record.released && record.era(clock) == Era::Foreign
}

/// Notes what somebody has seen who only read: the wait for a record begins with the first look at it,
/// whoever looks. Where nobody asks for the lease itself (the place of a dead candidate, a record to be
/// cleaned up), no other would ever be noted.
///
/// As far as that can be done at once. Whoever reads has an answer either way, and the next look tries again.
pub(crate) fn note_what_was_read(connection: &Connection, clock: &BootClock, unnoted: &[LeaseName]) {
    if unnoted.is_empty() {
        return;
    }
    let _swallowed = transaction::write(connection, |connection| {
        unnoted
            .iter()
            .try_for_each(|name| note_at(connection, clock, name).map(drop))
    });
}

/// Looks at one lease, while this connection holds the write lock, and notes what it sees if nobody has yet.
pub(crate) fn note_at<'a>(
    connection: &Connection,
    clock: &'a BootClock,
    name: &LeaseName,
) -> Result<look::Seen<'a>, Trouble> {
    let mut seen = look::at(connection, clock, name)?;
    if let Some(record) = seen.record.as_ref().filter(|_| seen.is_unnoted()) {
        note(connection, record, seen.clock)?;
        seen.first_seen = Some(seen.clock.now);
    }
    Ok(seen)
}

/// Notes that this boot sees this version of `record` now. A sighting of an earlier version is replaced: a
/// record that changes has a holder that lives.
fn note(connection: &Connection, record: &Record, clock: Reading<'_>) -> Result<(), Trouble> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO sighting (name, observer_boot_id, record_boot_id, record_token, \
             record_version, first_seen_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            record.name.as_str(),
            clock.boot_id,
            record.boot_id,
            record.token.signed(),
            record.version,
            stored(clock.now)
        ])?;
    Ok(())
}

/// Forgets every sighting of a name whose record was replaced by one of this boot.
pub(crate) fn forget(connection: &Connection, name: &str) -> Result<(), Trouble> {
    connection
        .prepare_cached("DELETE FROM sighting WHERE name = ?1")?
        .execute([name])?;
    Ok(())
}
