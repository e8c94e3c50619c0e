//! A record as the server shows it, and what is understood of it.

use crate::row::{is_null, number, text};
use mysql_async::Row;
use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, CandidateId, End, Fault, FencingToken, Incarnation, Lease, LeaseName, Note,
    Predecessor, StoreError, Ttl,
};

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
    let shown = shown(row, first).map_err(|column| {
        let name = text(row, first).unwrap_or_default();
        unreadable(name, table, &format!("column {column} cannot be read"))
    })?;
    decode(&shown, table)
}

/// The column that cannot be read is the error.
fn shown(row: &Row, first: usize) -> Result<Shown, &'static str> {
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

/// Reads a record strictly: every value in its range.
///
/// # Errors
/// [`Fault::Unreadable`], not applied: it names lease, table, column and repair.
pub(crate) fn decode(shown: &Shown, table: &str) -> Result<Record, StoreError> {
    understand(shown).map_err(|why| unreadable(&shown.name, table, &why))
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

fn predecessor(term: &ShownTerm) -> Result<Predecessor, String> {
    Ok(Predecessor {
        candidate: candidate("previous_owner", &term.owner)?,
        token: token("previous_token", term.token)?,
        end: match term.end.as_str() {
            "released" => End::Released,
            "expired" => End::Expired,
            other => return Err(format!("previous_end is \"{}\"", shortened(other))),
        },
        vacant_for: microseconds(term.vacant_us),
    })
}

fn positive(column: &str, number: i64) -> Result<u64, String> {
    u64::try_from(number)
        .ok()
        .filter(|number| *number >= 1)
        .ok_or_else(|| format!("{column} is {number}, not from 1"))
}

fn token(column: &str, number: i64) -> Result<FencingToken, String> {
    FencingToken::from_signed(number)
        .map_err(|_| format!("{column} is {number}, not from 1 to {}", FencingToken::MAX))
}

fn candidate(column: &str, text: &str) -> Result<CandidateId, String> {
    CandidateId::new(text).map_err(|error| format!("{column}: {error}"))
}

fn understand(shown: &Shown) -> Result<Record, String> {
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
        return Err("expires_us is more than a day beyond the ttl".to_owned());
    }
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
            // Of one that was written by hand and is longer, as much as fits: notes decide nothing.
            note: Note::beginning_of(&shown.note),
        },
        previous: shown.previous.as_ref().map(predecessor).transpose()?,
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
