//! Doors for the fuzz targets in `fuzz/targets`, and for nobody else: no part of the API, and free to change.

use crate::record;
use crate::url::StoreUrl;
use tenure_core::{Entry, StoreError};

/// Reads a record as the store does.
///
/// # Errors
/// What the store says of a record that it cannot understand.
pub fn decode(name: &str, bytes: &[u8]) -> Result<Entry, StoreError> {
    record::decode(&format!("lease.{name}"), name, bytes)
}

/// Writes a record as the store does.
#[must_use]
pub fn encode(entry: &Entry) -> Vec<u8> {
    record::encode(entry)
}

/// The key of a name, and the name of a key.
#[must_use]
pub fn key(name: &str) -> (String, Option<String>) {
    let key = crate::keys::escaped(name);
    let back = crate::keys::unescaped(&key);
    (key, back)
}

/// What a URL says, before anything is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Hosts and bucket as messages show them.
    pub place: String,
    /// The bucket.
    pub bucket: String,
}

/// Reads a URL as connecting does, up to where it would send something.
///
/// # Errors
/// What connecting says of a URL that it does not take.
pub fn settle(url: &str) -> Result<Settled, StoreError> {
    let parsed = StoreUrl::parse(url)?;
    Ok(Settled {
        place: parsed.shown(),
        bucket: parsed.bucket,
    })
}
