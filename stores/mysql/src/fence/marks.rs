//! Marks as rows of a table.

use crate::look::{FOUND_AT, server};
use crate::row::{number, text};
use crate::schema::{ALL_ROWS, literal};
use crate::site::Site;
use mysql_async::Row;
use tenure_core::{MARKS_MAX, StoreError};
use tenure_remote::{MarkRow, Sought};

impl Site {
    /// What is sought, in the order of the resources, and one more than a page has at most.
    pub(super) async fn sought(&self, subject: &str, sought: Sought<'_>) -> Result<Vec<MarkRow>, StoreError> {
        let condition = match sought {
            Sought::Of(resource) => format!("f.resource = {}", literal(resource.as_str())),
            Sought::After(resource) => format!("f.resource > {}", literal(resource)),
        };
        // A table of an earlier set-up has no such column, and its marks are read all the same: inside, the
        // name is that of the column where there is one, and of the null outside where there is none.
        let bumped = "(SELECT bumped_token FROM tenure_fences g WHERE g.resource = f.resource)";
        let most = MARKS_MAX + 1;
        let statement = format!(
            "SELECT server.replica, server.alone, CAST(f.resource AS BINARY), CAST(f.lease AS BINARY), f.token, f.refused, \
             f.last_token, f.bumped FROM ({}) server LEFT JOIN (SELECT f.resource, f.lease, f.token, r.refused, r.last_token, \
             {bumped} AS bumped FROM (SELECT NULL AS bumped_token) none CROSS JOIN tenure_fences f \
             LEFT JOIN tenure_refusals r ON r.resource = f.resource WHERE {condition} ORDER BY f.resource LIMIT {most}) f \
             ON TRUE ORDER BY f.resource {ALL_ROWS}",
            server()
        );
        let rows = self.ask_now(subject, &statement).await?;
        Ok(rows.iter().filter_map(shown).collect())
    }
}

/// `None` for what the server says where it has found none.
fn shown(row: &Row) -> Option<MarkRow> {
    let [resource, lease, token, refused, last_refused, bumped] =
        std::array::from_fn(|column| FOUND_AT + column);
    Some(MarkRow {
        resource: text(row, resource)?.to_owned(),
        lease: text(row, lease).map(str::to_owned),
        token: number(row, token),
        refused: number(row, refused),
        last_refused: number(row, last_refused),
        bumped_token: number(row, bumped),
    })
}
