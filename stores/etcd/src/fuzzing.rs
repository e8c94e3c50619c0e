//! Doors for the fuzz targets in `fuzz/targets`, and for nobody else: no part of the API, and free to change.

use crate::fence::mark::MarkValue;
use crate::found::{Found, Remains};
use crate::keys::Keys;
use crate::url::StoreUrl;
use crate::wire::kv::KeyValue;
use std::time::Duration;
use tenure_core::{FencingToken, Lease, LeaseName, StoreError};

/// A key of a lease as a server may show it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// What follows the lease's name.
    pub part: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// The revision that wrote it last.
    pub revision: i64,
    /// How often it was written.
    pub version: i64,
    /// The session that it ends with.
    pub session: i64,
}

/// Reads the keys of a lease as the store does.
///
/// # Errors
/// What the store says of a lease that it cannot understand.
pub fn decode(name: &LeaseName, rows: &[Row]) -> Result<Option<Lease>, StoreError> {
    let keys = Keys::new("tenure");
    let base = keys.of_lease(name).0;
    let shown: Vec<KeyValue> = rows
        .iter()
        .map(|row| KeyValue {
            key: [base.as_slice(), &row.part].concat(),
            create_revision: row.revision,
            mod_revision: row.revision,
            version: row.version,
            value: row.value.clone(),
            lease: row.session,
        })
        .collect();
    let remains = Remains {
        remaining: Duration::from_secs(5),
        renewed_ago: Duration::from_secs(1),
    };
    Ok(Found::read(&keys, name.as_str(), &shown)?.lease(name, remains))
}

/// Reads the mark of a fence as the fence does.
///
/// # Errors
/// What the fence says of a mark that it cannot understand.
pub fn decode_mark(value: &[u8]) -> Result<(Option<LeaseName>, FencingToken), StoreError> {
    let mark = MarkValue::decode(b"tenure/fence/ledger", "ledger", value)?;
    Ok((mark.lease, mark.token))
}

/// What a URL says, before anything is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Members and prefix as messages show them.
    pub place: String,
    /// What every key begins with.
    pub prefix: String,
}

/// Reads a URL as connecting does, up to where it would read a file or send something.
///
/// # Errors
/// What connecting says of a URL that it does not take.
pub fn settle(url: &str) -> Result<Settled, StoreError> {
    let parsed = StoreUrl::parse(url)?;
    Ok(Settled {
        place: parsed.shown(),
        prefix: parsed.prefix,
    })
}
