//! Reading without deciding: one lease, or a page of them.

use crate::clock::BootClock;
use crate::database::Database;
use crate::look;
use crate::record::{Record, record_columns};
use crate::sighting;
use crate::trouble::Trouble;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, params};
use tenure_core::{Cursor, Lease, LeaseName, LeasePage, Listed, Page, Selection};

/// Longest key that is shown, in characters: a lease's name fits whole.
const SHOWN_CHARACTERS_MAX: usize = 255;

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
        " FROM lease WHERE name >= ?1 AND name > ?2 AND (?3 OR released = 0) ORDER BY name"
    ))?;
    let all = page.selection == Selection::All;
    let mut rows = statement.query(params![page.prefix, start_of(page.after.as_ref()), all])?;
    let (mut leases, mut unnoted, mut last) = (Vec::new(), Vec::new(), None);
    while let Some(row) = rows.next()? {
        let key = key(row)?;
        if !key.starts_with(page.prefix.as_bytes()) {
            break;
        }
        if leases.len() >= usize::from(page.limit) {
            return Ok((LeasePage { leases, next: last }, unnoted));
        }
        last = Some(Cursor::behind(key));
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
                let key = shown_key(key);
                let error = Trouble::Record(fault).into_error(&format!("lease \"{key}\""), shown);
                Listed::Unreadable { key, error }
            }
        });
    }
    Ok((LeasePage { leases, next: None }, unnoted))
}

/// A key for people, escaped.
pub(crate) fn shown_key(key: &[u8]) -> String {
    let key = String::from_utf8_lossy(key);
    let shown_characters = key.chars().take(SHOWN_CHARACTERS_MAX);
    shown_characters.flat_map(char::escape_debug).collect()
}

/// What a row must be greater than to stand on the page. Bytes that are no text are compared as they are.
pub(crate) fn start_of(after: Option<&Cursor>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(after.map_or(b"", Cursor::as_bytes)))
}

/// The table keeps texts alone there.
pub(crate) fn key<'row>(row: &'row Row<'_>) -> Result<&'row [u8], Trouble> {
    Ok(row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?)
}
