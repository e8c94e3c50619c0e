//! Databases of the server's own, which are not as others.

use crate::url::invalid;
use tenure_core::StoreError;

/// Each member has its own one, of which no other member has anything.
const LOCAL: &str = "local";

/// These are on every member, and have neither change streams nor transactions.
const INTERNAL: [&str; 2] = ["admin", "config"];

/// Refuses the database that no fail-over keeps: a write there is confirmed as by a majority at once, as
/// there is nothing to be confirmed, and the next primary knows neither the leases nor the marks.
///
/// # Errors
/// [`Fault::Invalid`](tenure_core::Fault::Invalid), not applied.
pub(crate) fn refuse_local(database: &str) -> Result<(), StoreError> {
    if database != LOCAL {
        return Ok(());
    }
    Err(invalid(
        "the database \"local\" is each MongoDB member's own, and a fail-over forgets what is in it; name another one in the URL",
    ))
}

/// Whether nobody can watch it.
pub(crate) fn is_internal(database: &str) -> bool {
    INTERNAL.contains(&database)
}
