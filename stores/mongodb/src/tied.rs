//! A URL that ties all requests to one server, as `mongosh` prints it: a fail-over is not followed.

use crate::site::{Site, Topology};
use mongodb::options::ClientOptions;
use tenure_core::{Fault, StoreError};

/// What that means where the server is of a replica set.
pub(crate) const TIED: &str =
    "directConnection=true in the URL ties this to one server: a fail-over is not followed";

/// What to do about it.
pub(crate) const UNTIE: &str = "remove directConnection=true from the URL";

/// Notes whether the URL of a store that was opened, or was not, ties it to one server, and says so. No error: behind a tunnel
/// there may be no other way.
pub(crate) fn tied(opened: Result<Site, StoreError>, options: &ClientOptions) -> Result<Site, StoreError> {
    if options.direct_connection != Some(true) {
        return opened;
    }
    let mut site = opened.map_err(|mut error| {
        if error.fault == Fault::Unreachable {
            error.message.push_str(&format!("; {TIED}; {UNTIE}"));
        }
        error
    })?;
    site.is_tied = true;
    if site.is_tied_to_a_member() {
        tracing::warn!(place = %site.place, "{TIED}; {UNTIE}");
    }
    Ok(site)
}

impl Site {
    /// Whether only one member of a replica set is ever asked. A server that is alone, or a router, is no member.
    pub(crate) fn is_tied_to_a_member(&self) -> bool {
        self.is_tied && matches!(self.topology, Topology::ReplicaSet { .. })
    }
}
