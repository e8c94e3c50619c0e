//! Removing the records that nobody uses, a page at a time, each page in one transaction.

use crate::clock::{Reading, wall_clock_ms};
use crate::database::Database;
use crate::listing::{key, start_of};
use crate::record::{Record, record_columns};
use crate::sighting;
use crate::transaction;
use crate::trouble::Trouble;
use rusqlite::{Connection, params};
use std::time::Duration;
use tenure_core::{Cursor, LeaseName, Moment, Purge, Purged, Purging};

/// One try at a page.
pub(crate) fn purge(database: &Database, request: &Purge) -> Result<Purged, Trouble> {
    request.check().map_err(Trouble::Told)?;
    let session = database.session()?;
    // What a power cut takes back is removed the next time.
    let connection = &session.connection;
    match request.purging {
        Purging::OnlyLooks => {
            let found = look(database, connection, request)?;
            sighting::note_what_was_read(connection, &database.clock, &found.unnoted);
            Ok(Purged {
                unused: found.unused,
                removed: 0,
                next: found.next,
            })
        }
        Purging::Removes => transaction::write(connection, |connection| {
            let found = look(database, connection, request)?;
            for name in &found.unnoted {
                sighting::note_at(connection, &database.clock, name)?;
            }
            let mut removed = 0;
            for name in &found.unused {
                let rows = connection
                    .prepare_cached("DELETE FROM lease WHERE name = ?1")?
                    .execute([name.as_str()])?;
                sighting::forget(connection, name.as_str())?;
                removed += u64::try_from(rows).unwrap_or(0);
            }
            Ok(Purged {
                unused: found.unused,
                removed,
                next: found.next,
            })
        }),
    }
}

/// What a look at one page has found.
#[derive(Default)]
struct Found {
    /// Nobody uses these.
    unused: Vec<LeaseName>,
    /// These are of another boot and have not been noted yet: nobody knows since when they are unused.
    unnoted: Vec<LeaseName>,
    next: Option<Cursor>,
}

fn look(database: &Database, connection: &Connection, request: &Purge) -> Result<Found, Trouble> {
    // The age is by the wall clock, for no other clock spans two boots; it decides only what is *kept*, never
    // who holds a lease. A text there that is no date is no age either.
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        record_columns!(),
        ", CAST((julianday('now') - julianday(last_renewed_at)) * 86400000.0 AS INTEGER) \
         FROM lease WHERE name >= ?1 AND name > ?2 ORDER BY name LIMIT ?3"
    ))?;
    let start = start_of(request.after.as_ref());
    let mut rows = statement.query(params![request.prefix, start, request.limit])?;
    let (mut found, mut seen, mut last) = (Found::default(), 0_u16, None);
    while let Some(row) = rows.next()? {
        let key = key(row)?;
        if !key.starts_with(request.prefix.as_bytes()) {
            return Ok(found);
        }
        seen += 1;
        last = Some(Cursor::behind(key));
        let Ok(record) = Record::read(row) else {
            // Left as it is.
            continue;
        };
        let age_ms: Option<i64> = row.get(15).unwrap_or(None);
        let clock = database.clock.read();
        let first_seen = sighting::first_seen(connection, &record, clock)?;
        if sighting::is_unnoted(&record, clock, first_seen) {
            found.unnoted.push(record.name);
        } else if is_unused(&record, clock, first_seen, age_ms, request) {
            found.unused.push(record.name);
        }
    }
    found.next = last.filter(|_| seen == request.limit);
    Ok(found)
}

fn is_unused(
    record: &Record,
    clock: Reading<'_>,
    first_seen: Option<Moment>,
    age_ms: Option<i64>,
    request: &Purge,
) -> bool {
    // Counted from the last extension, a record has been unused for its ttl less.
    let wait = request
        .unused_at_least(record.ttl)
        .saturating_add(record.ttl.duration());
    let is_old = age_ms
        .and_then(|age| u64::try_from(age).ok())
        .is_some_and(|age| Duration::from_millis(age) >= wait);
    // The next token of the name starts from the clock, which may have been set back a little by then.
    let since_ms = u128::from(wall_clock_ms()).saturating_sub(wait.as_millis());
    let rises = u128::try_from(record.token.signed()).is_ok_and(|token| token < since_ms);
    is_old && rises && record.remaining(clock, first_seen).is_zero()
}
