//! Reading marks.

use super::subject;
use crate::fault::Deed;
use crate::record::shortened;
use crate::site::{Site, Typed};
use tenure_core::{Fault, FencingToken, LeaseName, MARKS_MAX, Mark, ResourceName, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

impl Site {
    /// The mark of `resource`, with its refusals.
    pub(super) async fn mark(&self, resource: &ResourceName) -> Result<Option<Mark>, StoreError> {
        let parameters: [Typed<'_>; 1] = [(&resource.as_str(), Type::TEXT)];
        let found = self
            .rows(&subject(resource), "f.resource = $1", &parameters)
            .await?;
        found.first().map(|row| self.read_mark(row)).transpose()
    }

    /// A page of marks after `after`.
    pub(super) async fn marks(&self, after: Option<&ResourceName>) -> Result<Vec<Mark>, StoreError> {
        let after = after.map_or("", ResourceName::as_str);
        let parameters: [Typed<'_>; 1] = [(&after, Type::TEXT)];
        let found = self.rows("the fence", "f.resource > $1", &parameters).await?;
        found.iter().map(|row| self.read_mark(row)).collect()
    }

    async fn rows(
        &self,
        subject: &str,
        condition: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let schema = self.schema();
        let statement = format!(
            "SELECT f.resource, f.lease, f.token, r.refused, r.last_token FROM {schema}.fences f LEFT JOIN \
             {schema}.refusals r ON r.resource = f.resource WHERE {condition} ORDER BY f.resource LIMIT {MARKS_MAX}"
        );
        self.ask(Deed::Read, subject, &statement, parameters).await
    }

    fn read_mark(&self, row: &Row) -> Result<Mark, StoreError> {
        let text = |index| row.try_get::<_, Option<String>>(index).ok().flatten();
        let number = |index| row.try_get::<_, Option<i64>>(index).ok().flatten();
        let resource = text(0).unwrap_or_default();
        self.understood(&resource, text(1).as_deref(), number(2))
            .map(|mark| Mark {
                refused: number(3).and_then(|count| u64::try_from(count).ok()).unwrap_or(0),
                last_refused: number(4).and_then(|token| FencingToken::from_signed(token).ok()),
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
            let (resource, schema) = (shortened(resource), &self.dial.url.schema);
            let message = format!(
                "fence \"{resource}\" in {schema}.fences: column {column} is no valid value; it was left as it is; mend or \
                 remove the row"
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
