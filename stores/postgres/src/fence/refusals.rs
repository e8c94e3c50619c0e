//! Where refusals are noted: in a table beside the marks.

use crate::fault::Deed;
use crate::site::{Site, Typed};
use tenure_core::{FencingToken, ResourceName};
use tenure_remote::Notes;
use tokio_postgres::types::Type;

impl Notes for Site {
    async fn note(&self, resource: &ResourceName, count: u64, last: FencingToken) -> Result<(), String> {
        let statement = format!(
            "INSERT INTO {}.refusals AS r (resource, refused, last_token) VALUES ($1, $2, $3) ON CONFLICT (resource) DO \
             UPDATE SET refused = least(r.refused, 9223372036854775807 - $2) + $2, last_token = $3, \
             last_at = clock_timestamp() RETURNING r.resource",
            self.schema()
        );
        let parameters: [Typed<'_>; 3] = [
            (&resource.as_str(), Type::TEXT),
            (&i64::try_from(count).unwrap_or(i64::MAX), Type::INT8),
            (&last.signed(), Type::INT8),
        ];
        let noted = self.ask(Deed::Write, "refusals", &statement, &parameters).await;
        noted.map(drop).map_err(|error| error.to_string())
    }
}
