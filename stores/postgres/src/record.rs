//! A record as the server shows it, and what is understood of it.

use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, CandidateId, End, Fault, FencingToken, Incarnation, Lease, LeaseName, Note,
    Predecessor, StoreError, Ttl,
};
use tokio_postgres::Row;

/// What a statement shows of a record: plain values of their columns' types. The durations are computed by the server,
/// against the one moment at which it decided.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) incarnation: String,
    pub(crate) token: i64,
    pub(crate) attempt: i64,
    pub(crate) terms: i64,
    pub(crate) ttl_ms: i64,
    pub(crate) released: bool,
    pub(crate) wish: bool,
    pub(crate) remaining_us: i64,
    pub(crate) held_us: i64,
    pub(crate) renewed_us: i64,
    pub(crate) note: String,
    pub(crate) previous: Option<ShownTerm>,
}

/// The term before, as the server shows it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ShownTerm {
    pub(crate) owner: String,
    pub(crate) token: i64,
    pub(crate) end: String,
    pub(crate) vacant_us: i64,
}

/// A record that was understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// What the contract shows of it.
    pub(crate) lease: Lease,
    /// The term before this one.
    pub(crate) previous: Option<Predecessor>,
}

/// How many columns a record has.
pub(crate) const COLUMNS: usize = 18;

/// Whether a row has a record in its columns from `first` on, and nothing else. One that has not is the answer to something
/// else.
pub(crate) fn is_there(row: &Row, first: usize) -> bool {
    row.len() == first + COLUMNS
}

/// Reads the record in the columns from `first` on, in the order of [`RECORD`](crate::schema::RECORD).
///
/// # Errors
/// [`Fault::Unreadable`], not applied: a column is of another type, or null.
pub(crate) fn read(row: &Row, first: usize, table: &str) -> Result<Record, StoreError> {
    let shown = shown(row, first).map_err(|error| {
        let name = row.try_get::<_, String>(first).unwrap_or_default();
        unreadable(&name, table, &format!("a column cannot be read: {error}"))
    })?;
    decode(&shown, table)
}

fn shown(row: &Row, first: usize) -> Result<Shown, tokio_postgres::Error> {
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

/// Reads a record strictly: every value in its range.
///
/// # Errors
/// [`Fault::Unreadable`], not applied: it names lease, table, column and repair.
pub(crate) fn decode(shown: &Shown, table: &str) -> Result<Record, StoreError> {
    understand(shown).map_err(|why| unreadable(&shown.name, table, &why))
}

fn understand(shown: &Shown) -> Result<Record, String> {
    let positive = |column: &str, number: i64| {
        u64::try_from(number)
            .ok()
            .filter(|number| *number >= 1)
            .ok_or_else(|| format!("{column} is {number}, not from 1"))
    };
    let token = |column: &str, number: i64| {
        FencingToken::from_signed(number)
            .map_err(|_| format!("{column} is {number}, not from 1 to {}", FencingToken::MAX))
    };
    let candidate =
        |column: &str, text: &str| CandidateId::new(text).map_err(|error| format!("{column}: {error}"));
    let incarnation: Incarnation = shown
        .incarnation
        .parse()
        .map_err(|why| format!("incarnation: {why}"))?;
    let ttl = u64::try_from(shown.ttl_ms)
        .ok()
        .and_then(|ms| Ttl::from_millis(ms).ok())
        .ok_or_else(|| format!("ttl_ms is {}, not from 100 to 86400000", shown.ttl_ms))?;
    let remaining = match shown.released {
        true => Duration::ZERO,
        false => microseconds(shown.remaining_us),
    };
    if !ttl.may_leave(remaining) {
        return Err("expires_at is more than a day beyond the ttl".to_owned());
    }
    let previous = shown.previous.as_ref().map(|term| {
        Ok::<_, String>(Predecessor {
            candidate: candidate("previous_owner", &term.owner)?,
            token: token("previous_token", term.token)?,
            end: match term.end.as_str() {
                "released" => End::Released,
                "expired" => End::Expired,
                other => return Err(format!("previous_end is \"{}\"", shortened(other))),
            },
            vacant_for: microseconds(term.vacant_us),
        })
    });
    Ok(Record {
        lease: Lease {
            name: LeaseName::new(&shown.name).map_err(|error| format!("name: {error}"))?,
            holder: Candidate {
                id: candidate("owner", &shown.owner)?,
                incarnation,
            },
            token: token("token", shown.token)?,
            attempt: Attempt::new(positive("attempt", shown.attempt)?)
                .ok_or_else(|| format!("attempt is {}", shown.attempt))?,
            terms: positive("terms", shown.terms)?,
            ttl,
            remaining,
            released: shown.released,
            held_for: microseconds(shown.held_us),
            renewed_ago: microseconds(shown.renewed_us),
            asked_to_step_down: shown.wish,
            note: note_from(&shown.note),
        },
        previous: previous.transpose()?,
    })
}

pub(crate) fn unreadable(name: &str, table: &str, why: &str) -> StoreError {
    let name = shortened(name);
    let message = format!(
        "lease \"{name}\" in {table}: {why}; the record was left as it is; look at it with SELECT * FROM {table}, then mend or \
         remove it"
    );
    StoreError::not_applied(Fault::Unreadable, message)
}

/// A note as a text that the server can keep: it has no NUL.
pub(crate) fn note_text(note: &Note) -> String {
    note.as_str().replace('\\', "\\\\").replace('\0', "\\0")
}

/// The note in such a text. Whoever wrote one by hand, or a longer one, finds it as far as it goes: notes decide nothing.
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

/// Zero for what a step of the server's clock has made negative.
fn microseconds(microseconds: i64) -> Duration {
    Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}

pub(crate) fn shortened(text: &str) -> String {
    text.chars()
        .take(SHOWN_CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect()
}

/// Longest key or value that a message shows, in characters: a lease's name fits whole.
const SHOWN_CHARACTERS_MAX: usize = 255;

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
