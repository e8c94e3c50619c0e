//! A record as a server of SQL shows it, and what is understood of it: by the same rules, whatever the
//! columns are called.

use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, CandidateId, End, Fault, FencingToken, Incarnation, Lease, LeaseName, Note,
    Predecessor, StoreError, Ttl,
};

/// What a statement shows of a record: plain values of their columns' types. The durations are computed by
/// the server, against the one moment at which it decided.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    /// The lease's name.
    pub name: String,
    /// Who holds it, or held it last.
    pub owner: String,
    /// The same, as its holder: 32 hex digits.
    pub incarnation: String,
    /// Of the term.
    pub token: i64,
    /// By which it was taken.
    pub attempt: i64,
    /// How many there were.
    pub terms: i64,
    /// In milliseconds.
    pub ttl_ms: i64,
    /// Whether it was given back.
    pub released: bool,
    /// Whether the holder is asked to step down.
    pub wish: bool,
    /// What is left of it, in microseconds.
    pub remaining_us: i64,
    /// Since it was taken, in microseconds.
    pub held_us: i64,
    /// Since it was extended, in microseconds.
    pub renewed_us: i64,
    /// As the server keeps it.
    pub note: String,
    /// The term before.
    pub previous: Option<ShownTerm>,
}

/// The term before, as the server shows it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShownTerm {
    /// Who held it.
    pub owner: String,
    /// Its token.
    pub token: i64,
    /// How it ended: `released` or `expired`.
    pub end: String,
    /// How long before the term after it that was, in microseconds.
    pub vacant_us: i64,
}

/// A record that was understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// What the contract shows of it.
    pub lease: Lease,
    /// The term before this one.
    pub previous: Option<Predecessor>,
}

/// In what a store's records differ from another's.
pub struct Columns {
    /// What the column of the end is called.
    pub expires: &'static str,
    /// The note in the text that the server keeps. Of one that was written by hand and is longer, as much as
    /// fits: notes decide nothing.
    pub note: fn(&str) -> Note,
}

/// Reads a record strictly: every value in its range. `table` is its table's name, for messages.
///
/// # Errors
/// [`Fault::Unreadable`], not applied: it names lease, table, column and repair.
pub fn decode(shown: &Shown, columns: &Columns, table: &str) -> Result<Record, StoreError> {
    understand(shown, columns).map_err(|why| unreadable(&shown.name, table, &why))
}

/// The term before, read strictly.
///
/// # Errors
/// Why it cannot be understood: the column and its value.
pub fn predecessor(term: &ShownTerm) -> Result<Predecessor, String> {
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

/// A number from 1.
///
/// # Errors
/// The column and its value.
pub fn positive(column: &str, number: i64) -> Result<u64, String> {
    u64::try_from(number)
        .ok()
        .filter(|number| *number >= 1)
        .ok_or_else(|| format!("{column} is {number}, not from 1"))
}

/// A token.
///
/// # Errors
/// The column and its value.
pub fn token(column: &str, number: i64) -> Result<FencingToken, String> {
    FencingToken::from_signed(number)
        .map_err(|_| format!("{column} is {number}, not from 1 to {}", FencingToken::MAX))
}

fn candidate(column: &str, text: &str) -> Result<CandidateId, String> {
    CandidateId::new(text).map_err(|error| format!("{column}: {error}"))
}

fn understand(shown: &Shown, columns: &Columns) -> Result<Record, String> {
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
        return Err(format!("{} is more than a day beyond the ttl", columns.expires));
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
            note: (columns.note)(&shown.note),
        },
        previous: shown.previous.as_ref().map(predecessor).transpose()?,
    })
}

/// What is said of a record that cannot be understood: not applied, and the way out.
#[must_use]
pub fn unreadable(name: &str, table: &str, why: &str) -> StoreError {
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

/// A key or value as a message shows it.
#[must_use]
pub fn shortened(text: &str) -> String {
    text.chars()
        .take(SHOWN_CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect()
}

/// Longest key or value that a message shows, in characters: a lease's name fits whole.
const SHOWN_CHARACTERS_MAX: usize = 255;
