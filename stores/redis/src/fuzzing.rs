//! Doors for the fuzz targets in `fuzz/targets`, and for nobody else: no part of the API, and free to change.

use crate::record;
use crate::url::StoreUrl;
use std::time::Duration;
use tenure_core::{Lease, StoreError};

/// The fields of a record in the order of [`decode`]'s second argument.
pub const FIELDS: [&str; 18] = record::FIELDS;

/// Reads a record as the store does.
///
/// # Errors
/// What the store says of a record that it cannot understand.
pub fn decode(name: &str, fields: &[Option<Vec<u8>>], now_ms: u64) -> Result<Lease, StoreError> {
    record::decode(
        &format!("{{tenure}}:lease:{name}"),
        name,
        Some(&fields.to_vec()),
        now_ms,
    )
}

/// What a URL says, before anything is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Hosts and database as messages show them.
    pub place: String,
    /// What the names of all keys begin with.
    pub prefix: String,
    /// After what time unused names are removed.
    pub purge_after: Option<Duration>,
}

/// Reads a URL as connecting does, up to where it would send something.
///
/// # Errors
/// What connecting says of a URL that it does not take.
pub fn settle(url: &str) -> Result<Settled, StoreError> {
    let parsed = StoreUrl::parse(url)?;
    Ok(Settled {
        place: parsed.shown(),
        prefix: parsed.prefix,
        purge_after: parsed.purge_after,
    })
}
