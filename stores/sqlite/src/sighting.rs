//! Records of other boots: since when this boot has seen them unchanged.
//!
//! Kept in the file, so that processes that live shorter than the ttl (cron with `--no-wait`) wait together.

use crate::clock::Reading;
use crate::record::{Era, Record, stored};
use crate::trouble::Trouble;
use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::Moment;

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

/// Notes that this boot sees this version of `record` now. A sighting of an earlier version is replaced: a
/// record that changes has a holder that lives.
pub(crate) fn note(connection: &Connection, record: &Record, clock: Reading<'_>) -> Result<(), Trouble> {
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
