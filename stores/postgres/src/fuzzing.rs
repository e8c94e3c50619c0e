//! Doors for the fuzz targets in `fuzz/targets`, and for nobody else: no part of the API, and free to change.

use crate::audience;
use crate::record::{self, Shown, ShownTerm};
use crate::url::StoreUrl;
use tenure_core::{Lease, Predecessor, StoreError, WatchEvent};

/// A row as the server may show it: every value of its column's type, and nothing else is sure.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// `name`, `owner`, `incarnation`, `note`.
    pub texts: [String; 4],
    /// `token`, `attempt`, `terms`, `ttl_ms`.
    pub numbers: [i64; 4],
    /// Remaining, held and renewed, in microseconds.
    pub durations_us: [i64; 3],
    /// Whether it was released, and whether the holder was asked to step down.
    pub marks: [bool; 2],
    /// The term before: owner, token, end, for how many microseconds nobody held the lease.
    pub previous: Option<(String, i64, String, i64)>,
}

/// Reads a record as the store does.
///
/// # Errors
/// What the store says of a record that it cannot understand.
pub fn decode(row: Row) -> Result<(Lease, Option<Predecessor>), StoreError> {
    let [name, owner, incarnation, note] = row.texts;
    let [token, attempt, terms, ttl_ms] = row.numbers;
    let [remaining_us, held_us, renewed_us] = row.durations_us;
    let [released, wish] = row.marks;
    let shown = Shown {
        name,
        owner,
        incarnation,
        token,
        attempt,
        terms,
        ttl_ms,
        released,
        wish,
        remaining_us,
        held_us,
        renewed_us,
        note,
        previous: row.previous.map(|(owner, token, end, vacant_us)| ShownTerm {
            owner,
            token,
            end,
            vacant_us,
        }),
    };
    record::decode(&shown, "tenure.leases").map(|record| (record.lease, record.previous))
}

/// Reads a notification as the store does.
#[must_use]
pub fn notified(payload: &str) -> Option<WatchEvent> {
    audience::event(payload)
}

/// Reads a URL as connecting does, up to where it would send something: the place, for messages, and the
/// schema.
///
/// # Errors
/// What connecting says of a URL that it does not take.
pub fn settle(url: &str) -> Result<(String, String), StoreError> {
    let parsed = StoreUrl::parse(url)?;
    Ok((parsed.place(), parsed.schema))
}
