//! A record as the server shows it, and what is understood of it.

use crate::row::{is_null, number, text};
use mysql_async::Row;
use tenure_core::{FencingToken, Note, Predecessor, StoreError};
use tenure_remote::shown::{self, Columns, positive, predecessor, token, unreadable};
pub(crate) use tenure_remote::shown::{Record, Shown, ShownTerm, shortened};

/// A term that was taken by the short way.
pub(crate) struct Taken {
    pub(crate) token: FencingToken,
    pub(crate) terms: u64,
    pub(crate) previous: Option<Predecessor>,
}

/// Reads the record in the columns from `first` on, in the order of [`RECORD`](crate::schema::RECORD).
///
/// # Errors
/// [`Fault::Unreadable`], not applied: a column is of another type, or null.
pub(crate) fn read(row: &Row, first: usize, table: &str) -> Result<Record, StoreError> {
    let shown = columns(row, first).map_err(|column| {
        let name = text(row, first).unwrap_or_default();
        unreadable(name, table, &format!("column {column} cannot be read"))
    })?;
    decode(&shown, table)
}

/// The column that cannot be read is the error.
fn columns(row: &Row, first: usize) -> Result<Shown, &'static str> {
    let text = |at: usize, column| text(row, first + at).map(str::to_owned).ok_or(column);
    let number = |at: usize, column| number(row, first + at).ok_or(column);
    let previous = match number(14, "previous_token") {
        Ok(token) => Some(ShownTerm {
            owner: text(13, "previous_owner")?,
            token,
            end: text(15, "previous_end")?,
            vacant_us: number(16, "previous_us")?,
        }),
        Err(_none) => None,
    };
    Ok(Shown {
        name: text(0, "name")?,
        owner: text(1, "owner")?,
        incarnation: text(2, "incarnation")?,
        token: number(3, "token")?,
        attempt: number(4, "attempt")?,
        terms: number(5, "terms")?,
        ttl_ms: number(6, "ttl_ms")?,
        released: number(7, "released_us")? != 0,
        wish: number(8, "step_down_us")? != 0,
        remaining_us: number(9, "expires_us")?,
        held_us: number(10, "acquired_us")?,
        renewed_us: number(11, "renewed_us")?,
        note: text(12, "note")?,
        previous,
    })
}

/// Reads a record strictly.
///
/// # Errors
/// As [`shown::decode`].
pub(crate) fn decode(shown: &Shown, table: &str) -> Result<Record, StoreError> {
    const COLUMNS: Columns = Columns {
        expires: "expires_us",
        note: Note::beginning_of,
    };
    shown::decode(shown, &COLUMNS, table)
}

/// What the statement that takes a lease shows of the term: token, number of terms, the term before.
///
/// # Errors
/// [`Fault::Unreadable`], not applied: it names lease, table, column and repair.
pub(crate) fn read_taken(row: &Row, name: &str, table: &str) -> Result<Taken, StoreError> {
    let understood = || {
        let number =
            |at: usize, column: &str| number(row, at).ok_or(format!("column {column} cannot be read"));
        let text = |at: usize, column: &str| text(row, at).ok_or(format!("column {column} cannot be read"));
        let previous = match is_null(row, 3) {
            true => None,
            false => Some(predecessor(&ShownTerm {
                owner: text(2, "previous_owner")?.to_owned(),
                token: number(3, "previous_token")?,
                end: text(4, "previous_end")?.to_owned(),
                vacant_us: number(5, "previous_us")?,
            })?),
        };
        Ok(Taken {
            token: token("token", number(0, "token")?)?,
            terms: positive("terms", number(1, "terms")?)?,
            previous,
        })
    };
    understood().map_err(|why: String| unreadable(name, table, &why))
}
