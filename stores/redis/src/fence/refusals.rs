//! Where refusals are noted: in a hash beside the mark.

use super::script::REFUSALS;
use crate::fault::Deed;
use crate::script::Arguments;
use crate::site::Site;
use tenure_core::{FencingToken, ResourceName};
use tenure_remote::Notes;

impl Notes for Site {
    async fn note(&self, resource: &ResourceName, count: u64, last: FencingToken) -> Result<(), String> {
        let arguments = Arguments::on([self.keys.refusals(resource)])
            .with(count)
            .with(last);
        let noted = self.run(&REFUSALS, &arguments, Deed::Write, "refusals").await;
        noted.map(drop).map_err(|error| error.to_string())
    }
}
