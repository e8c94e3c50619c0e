//! Reading without deciding: one lease, or a page of them.

use crate::clock::BootClock;
use crate::database::Database;
use crate::look;
use crate::record::{Record, record_columns};
use crate::sighting;
use crate::trouble::Trouble;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use tenure_core::{Lease, LeaseName, LeasePage, Listed, Page};

/// Most rows with impossible names that one page shows over its limit. The next page can only begin after a
/// real name.
const NAMELESS_MAX: usize = 1_000;

/// One try at reading one lease.
pub(crate) fn read_one(database: &Database, name: &LeaseName) -> Result<Option<Lease>, Trouble> {
    let session = database.session()?;
    let seen = look::at(&session.connection, &database.clock, name)?;
    if seen.is_unnoted() {
        sighting::note_what_was_read(&session.connection, &database.clock, std::slice::from_ref(name));
    }
    Ok(seen.into_lease())
}

/// One try at reading a page.
pub(crate) fn read_page(database: &Database, page: &Page) -> Result<LeasePage, Trouble> {
    page.check().map_err(Trouble::Told)?;
    let session = database.session()?;
    let (leases, unnoted) = rows(&session.connection, &database.clock, &database.shown, page)?;
    // The statement has ended: a write in the middle of it would have to follow on what it has read.
    sighting::note_what_was_read(&session.connection, &database.clock, &unnoted);
    Ok(leases)
}

/// The page, and the names of those in it that are of another boot and that nobody has noted yet.
fn rows(
    connection: &Connection,
    clock: &BootClock,
    shown: &str,
    page: &Page,
) -> Result<(LeasePage, Vec<LeaseName>), Trouble> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        record_columns!(),
        " FROM lease WHERE name >= ?1 AND name > ?2 ORDER BY name"
    ))?;
    let after = page.after.as_ref().map_or("", LeaseName::as_str);
    let mut rows = statement.query(params![page.prefix, after])?;
    let limit = usize::from(page.limit);
    let (mut leases, mut unnoted) = (Vec::new(), Vec::new());
    let mut last_name = None;
    let mut can_end_here = false;
    while let Some(row) = rows.next()? {
        let key = key(row);
        if !key.starts_with(&page.prefix) {
            break;
        }
        if (leases.len() >= limit && can_end_here) || leases.len() >= limit + NAMELESS_MAX {
            let next = last_name;
            return Ok((LeasePage { leases, next }, unnoted));
        }
        let name = LeaseName::new(&key).ok();
        can_end_here = name.is_some();
        last_name = name.or(last_name);
        leases.push(match Record::read(row) {
            Ok(record) => {
                let clock = clock.read();
                let first_seen = sighting::first_seen(connection, &record, clock)?;
                if sighting::is_unnoted(&record, clock, first_seen) {
                    unnoted.push(record.name.clone());
                }
                Listed::Lease(record.into_lease(clock, first_seen))
            }
            Err(fault) => {
                let key = key.escape_debug().to_string();
                let error = Trouble::Record(fault).into_error(&format!("lease \"{key}\""), shown);
                Listed::Unreadable { key, error }
            }
        });
    }
    Ok((LeasePage { leases, next: None }, unnoted))
}

fn key(row: &Row<'_>) -> String {
    match row.get_ref(0) {
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Ok(ValueRef::Integer(number)) => number.to_string(),
        Ok(ValueRef::Real(number)) => number.to_string(),
        Ok(ValueRef::Null) | Err(_) => String::new(),
    }
}
