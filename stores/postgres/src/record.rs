//! A record as the server shows it, and what is understood of it.

use tenure_core::{Note, StoreError};
use tenure_remote::shown::{self, Columns, unreadable};
pub(crate) use tenure_remote::shown::{Record, Shown, ShownTerm, shortened};
use tokio_postgres::Row;

/// How many columns a record has.
pub(crate) const COLUMNS: usize = 18;

/// Whether a row has a record in its columns from `first` on, and nothing else. One that has not is the
/// answer to something else.
pub(crate) fn is_there(row: &Row, first: usize) -> bool {
    row.len() == first + COLUMNS
}

/// Reads the record in the columns from `first` on, in the order of [`RECORD`](crate::schema::RECORD).
///
/// # Errors
/// [`Fault::Unreadable`], not applied: a column is of another type, or null.
pub(crate) fn read(row: &Row, first: usize, table: &str) -> Result<Record, StoreError> {
    let shown = columns(row, first).map_err(|error| {
        let name = row.try_get::<_, String>(first).unwrap_or_default();
        unreadable(&name, table, &format!("a column cannot be read: {error}"))
    })?;
    decode(&shown, table)
}

fn columns(row: &Row, first: usize) -> Result<Shown, tokio_postgres::Error> {
    let previous_token: Option<i64> = row.try_get(first + 15)?;
    let previous = match previous_token {
        Some(token) => Some(ShownTerm {
            owner: row.try_get(first + 14)?,
            token,
            end: row.try_get(first + 16)?,
            vacant_us: row.try_get(first + 17)?,
        }),
        None => None,
    };
    Ok(Shown {
        name: row.try_get(first)?,
        owner: row.try_get(first + 1)?,
        incarnation: row.try_get(first + 2)?,
        token: row.try_get(first + 3)?,
        attempt: row.try_get(first + 4)?,
        terms: row.try_get(first + 5)?,
        ttl_ms: row.try_get(first + 6)?,
        released: row.try_get(first + 7)?,
        wish: row.try_get(first + 8)?,
        remaining_us: row.try_get(first + 10)?,
        held_us: row.try_get(first + 11)?,
        renewed_us: row.try_get(first + 12)?,
        note: row.try_get(first + 13)?,
        previous,
    })
}

/// A verdict and the record that it is about, which a function answers in one value: texts, in the order of
/// [`RECORD`](crate::schema::RECORD). What has not this shape is the answer to something else.
pub(crate) struct Told(Vec<Option<String>>);

impl Told {
    /// Reads it from the first column.
    pub(crate) fn read(row: &Row) -> Option<Self> {
        let texts: Vec<Option<String>> = row.try_get(0).ok()?;
        (texts.len() == 1 + COLUMNS).then_some(Self(texts))
    }

    /// The name of the lease that it is about.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0[1].as_deref()
    }

    pub(crate) fn verdict(&self) -> &str {
        self.0[0].as_deref().unwrap_or_default()
    }

    /// The record.
    ///
    /// # Errors
    /// As [`read`].
    pub(crate) fn record(&self, table: &str) -> Result<Record, StoreError> {
        let shown = shown_in_texts(&self.0[1..]).map_err(|why| {
            let name = self.0[1].as_deref().unwrap_or_default();
            unreadable(name, table, &format!("a column cannot be read: {why}"))
        })?;
        decode(&shown, table)
    }
}

/// A record of these texts.
fn shown_in_texts(texts: &[Option<String>]) -> Result<Shown, String> {
    let text = |place: usize| texts[place].clone().ok_or_else(|| format!("{place} is null"));
    let number = |place: usize| -> Result<i64, String> {
        let text = text(place)?;
        text.parse()
            .map_err(|_| format!("{place} is \"{}\"", shortened(&text)))
    };
    let mark = |place: usize| match text(place)?.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("{place} is \"{}\"", shortened(other))),
    };
    let previous = match texts[15] {
        Some(_) => Some(ShownTerm {
            owner: text(14)?,
            token: number(15)?,
            end: text(16)?,
            vacant_us: number(17)?,
        }),
        None => None,
    };
    Ok(Shown {
        name: text(0)?,
        owner: text(1)?,
        incarnation: text(2)?,
        token: number(3)?,
        attempt: number(4)?,
        terms: number(5)?,
        ttl_ms: number(6)?,
        released: mark(7)?,
        wish: mark(8)?,
        remaining_us: number(10)?,
        held_us: number(11)?,
        renewed_us: number(12)?,
        note: text(13)?,
        previous,
    })
}

/// Reads a record strictly.
///
/// # Errors
/// As [`shown::decode`].
pub(crate) fn decode(shown: &Shown, table: &str) -> Result<Record, StoreError> {
    const NAMES: Columns = Columns {
        expires: "expires_at",
        note: note_from,
    };
    shown::decode(shown, &NAMES, table)
}

/// A note as a text that the server can keep: it has no NUL.
pub(crate) fn note_text(note: &Note) -> String {
    note.as_str().replace('\\', "\\\\").replace('\0', "\\0")
}

/// The note in such a text. Whoever wrote one by hand, or a longer one, finds it as far as it goes: notes
/// decide nothing.
fn note_from(text: &str) -> Note {
    let mut note = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let meant = match (character, characters.peek()) {
            ('\\', Some('0')) => '\0',
            ('\\', Some('\\')) => '\\',
            _ => {
                note.push(character);
                continue;
            }
        };
        characters.next();
        note.push(meant);
    }
    Note::beginning_of(&note)
}

#[cfg(test)]
mod tests {
    use super::note_from;

    /// As a set-up from before notes were cut by the server shows it.
    #[test]
    fn note_of_ten_megabytes_is_read_as_far_as_it_goes() {
        let note = note_from(&"\\".repeat(10_000_000));
        assert_eq!(note.as_str(), "\\".repeat(1024));
    }
}
