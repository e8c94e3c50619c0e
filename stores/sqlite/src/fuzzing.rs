//! A door for the fuzz targets in `fuzz/targets`, and for nobody else: no part of the API, and free to
//! change.

use crate::clock::Reading;
use crate::record::Record;
use rusqlite::Row;
use std::time::Duration;
use tenure_core::{Lease, Moment};

/// What was understood of a row.
#[derive(Debug)]
pub struct Understood {
    /// As the contract shows it.
    pub lease: Lease,
    /// Column `boot_id`.
    pub boot_id: String,
    /// Column `acquired_ns`.
    pub acquired: Moment,
    /// Column `renewed_ns`.
    pub renewed: Moment,
    /// Column `expires_ns`.
    pub expires: Moment,
    /// Column `version`.
    pub version: i64,
    /// How long a record of another boot is observed before it may be claimed.
    pub observation: Duration,
}

/// Reads a row of the `lease` table's columns as the store does, by a clock that shows `now` of `boot_id`.
///
/// # Errors
/// What the store says of a row that it cannot understand.
pub fn read(
    row: &Row<'_>,
    boot_id: &str,
    now: Moment,
    first_seen: Option<Moment>,
) -> Result<Understood, String> {
    let record = Record::read(row).map_err(|fault| fault.0)?;
    let (acquired, renewed, expires) = (record.acquired, record.renewed, record.expires);
    let (version, observation) = (record.version, record.observation());
    Ok(Understood {
        boot_id: record.boot_id.to_string(),
        lease: record.into_lease(Reading { boot_id, now }, first_seen),
        acquired,
        renewed,
        expires,
        version,
        observation,
    })
}
