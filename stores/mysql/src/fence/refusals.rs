//! Where refusals are noted: in a table beside the marks.

use crate::schema::{NOW_US, literal};
use crate::site::Site;
use tenure_core::{FencingToken, ResourceName};
use tenure_remote::{Deed, Notes};

impl Notes for Site {
    async fn note(&self, resource: &ResourceName, count: u64, last: FencingToken) -> Result<(), String> {
        let (count, last) = (i64::try_from(count).unwrap_or(i64::MAX), last.signed());
        let statement = format!(
            "INSERT INTO tenure_refusals (resource, refused, last_token, last_us) VALUES ({}, {count}, {last}, {NOW_US}) ON \
             DUPLICATE KEY UPDATE refused = LEAST(refused, 9223372036854775807 - {count}) + {count}, last_token = {last}, \
             last_us = {NOW_US}",
            literal(resource.as_str())
        );
        let noted = self.ask(Deed::Write, "refusals", &statement).await;
        noted.map(drop).map_err(|error| error.to_string())
    }
}
