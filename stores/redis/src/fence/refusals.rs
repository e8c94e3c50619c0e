//! Where refusals are noted: in a hash beside the mark.

use super::script::REFUSALS;
use crate::fault::Deed;
use crate::script::Arguments;
use crate::site::Site;
use std::sync::Arc;
use tenure_core::{FencingToken, ResourceName};
use tenure_remote::Notes;

/// The marks of one server.
pub(super) struct Beside(pub(super) Arc<Site>);

impl Notes for Beside {
    async fn note(&self, resource: &ResourceName, count: u64, last: FencingToken) -> Result<(), String> {
        let site = &self.0;
        let arguments = Arguments::on([site.keys.refusals(resource)])
            .with(count)
            .with(last);
        let noted = site.run(&REFUSALS, &arguments, Deed::Write, "refusals").await;
        noted.map(drop).map_err(|error| error.to_string())
    }
}
