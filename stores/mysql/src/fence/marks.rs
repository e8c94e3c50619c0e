//! Reading marks.

use super::subject;
use crate::record::shortened;
use crate::row::{number, text};
use crate::schema::literal;
use crate::site::Site;
use mysql_async::Row;
use tenure_core::{Fault, FencingToken, LeaseName, MARKS_MAX, Mark, ResourceName, StoreError};
use tenure_remote::Deed;

impl Site {
    /// The mark of `resource`, with its refusals.
    pub(super) async fn mark(&self, resource: &ResourceName) -> Result<Option<Mark>, StoreError> {
        let condition = format!("f.resource = {}", literal(resource.as_str()));
        let found = self.rows(&subject(resource), &condition).await?;
        found.first().map(|row| self.read_mark(row)).transpose()
    }

    /// A page of marks after `after`.
    pub(super) async fn marks(&self, after: Option<&ResourceName>) -> Result<Vec<Mark>, StoreError> {
        let condition = format!("f.resource > {}", literal(after.map_or("", ResourceName::as_str)));
        let found = self.rows("the fence", &condition).await?;
        found.iter().map(|row| self.read_mark(row)).collect()
    }

    async fn rows(&self, subject: &str, condition: &str) -> Result<Vec<Row>, StoreError> {
        let statement = format!(
            "SELECT f.resource, f.lease, f.token, r.refused, r.last_token FROM tenure_fences f LEFT JOIN tenure_refusals r ON \
             r.resource = f.resource WHERE {condition} ORDER BY f.resource LIMIT {MARKS_MAX}"
        );
        self.ask(Deed::Read, subject, &statement).await
    }

    fn read_mark(&self, row: &Row) -> Result<Mark, StoreError> {
        let resource = text(row, 0).unwrap_or_default();
        let mark = self.understood(resource, text(row, 1), number(row, 2))?;
        Ok(Mark {
            refused: number(row, 3)
                .and_then(|count| u64::try_from(count).ok())
                .unwrap_or(0),
            last_refused: number(row, 4).and_then(|token| FencingToken::from_signed(token).ok()),
            ..mark
        })
    }

    /// A mark as it was found; one that is no mark is refused rather than believed.
    pub(super) fn understood(
        &self,
        resource: &str,
        lease: Option<&str>,
        token: Option<i64>,
    ) -> Result<Mark, StoreError> {
        let wrong = |column: &str| {
            let (resource, database) = (shortened(resource), &self.dial.url.database);
            let message = format!(
                "fence \"{resource}\" in {database}.tenure_fences: column {column} is no valid value; it was left as it is; mend \
                 or remove the row"
            );
            StoreError::not_applied(Fault::Unreadable, message)
        };
        Ok(Mark {
            resource: ResourceName::new(resource).map_err(|_| wrong("resource"))?,
            lease: lease
                .map(LeaseName::new)
                .transpose()
                .map_err(|_| wrong("lease"))?,
            token: token
                .and_then(|token| FencingToken::from_signed(token).ok())
                .ok_or_else(|| wrong("token"))?,
            refused: 0,
            last_refused: None,
        })
    }
}
