//! Marks as rows of a table.

use crate::fault::Deed;
use crate::site::{Site, Typed};
use tenure_core::{MARKS_MAX, StoreError};
use tenure_remote::{MarkRow, Sought};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How many columns of a mark are read.
const COLUMNS: usize = 6;

/// The token to which an operator has raised the mark of row `f`. A table of an earlier set-up has no such
/// column, and its marks are read all the same. By the server's own operators, whatever the session's search
/// path.
pub(super) const BUMPED_TOKEN: &str =
    "(pg_catalog.to_jsonb(f) OPERATOR(pg_catalog.->>) 'bumped_token'::text)::bigint";

impl Site {
    /// What is sought, in the order of the resources, and one more than a page has at most.
    pub(super) async fn sought(&self, subject: &str, sought: Sought<'_>) -> Result<Vec<MarkRow>, StoreError> {
        let (condition, resource) = match sought {
            Sought::Of(resource) => ("f.resource OPERATOR(pg_catalog.=) $1", resource.as_str()),
            Sought::After(resource) => ("f.resource OPERATOR(pg_catalog.>) $1", resource),
        };
        let schema = self.schema();
        let statement = format!(
            "SELECT replica, found.* FROM (SELECT pg_catalog.pg_is_in_recovery() AS replica) server LEFT JOIN LATERAL \
             (SELECT f.resource, f.lease, f.token, r.refused, r.last_token, {BUMPED_TOKEN} FROM {schema}.fences f \
             LEFT JOIN {schema}.refusals r ON r.resource OPERATOR(pg_catalog.=) f.resource WHERE {condition} \
             ORDER BY f.resource LIMIT {MARKS_MAX} + 1) found ON true"
        );
        let parameters: [Typed<'_>; 1] = [(&resource, Type::TEXT)];
        let rows = self.ask(Deed::Read, subject, &statement, &parameters).await?;
        Ok(self
            .by_primary(subject, rows, COLUMNS)?
            .iter()
            .map(shown)
            .collect())
    }
}

fn shown(row: &Row) -> MarkRow {
    let number = |index| row.try_get(index).ok().flatten();
    MarkRow {
        resource: row.try_get(1).ok().flatten().unwrap_or_default(),
        lease: row.try_get(2).ok().flatten(),
        token: number(3),
        refused: number(4),
        last_refused: number(5),
        bumped_token: number(6),
    }
}
