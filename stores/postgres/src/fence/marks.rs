//! Reading marks.

use super::subject;
use crate::fault::Deed;
use crate::record::shortened;
use crate::site::{Site, Typed};
use tenure_core::{
    Cursor, Fault, FenceError, FencingToken, LeaseName, ListedMark, MARKS_MAX, Mark, MarkPage, REMOVE_MARK,
    ResourceName, StoreError, Term, check_owner, decide_entry,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How many columns of a mark are read.
const COLUMNS: usize = 6;

/// A mark, and who has claimed it.
pub(super) struct Kept {
    pub(super) mark: Mark,
}

impl Kept {
    /// By the column of that name: the token and not a word, as a claim by an earlier Tenure raises the mark
    /// past it, and knows nothing of it.
    pub(super) fn new(mark: Mark, bumped_token: Option<i64>) -> Self {
        let bumped = mark.lease.is_none() || bumped_token == Some(mark.token.signed());
        Self {
            mark: Mark { bumped, ..mark },
        }
    }

    /// Nobody, where an operator has raised the mark.
    fn claimant(&self) -> Option<&LeaseName> {
        self.mark.lease.as_ref().filter(|_| !self.mark.bumped)
    }
}

/// Whether a term may enter by the mark that was found.
pub(super) fn ruled(resource: &ResourceName, term: &Term, found: Option<&Kept>) -> Result<(), FenceError> {
    check_owner(resource, term, found.and_then(|kept| kept.mark.lease.as_ref()))?;
    let (claimant, token) = (found.and_then(Kept::claimant), found.map(|kept| kept.mark.token));
    decide_entry(resource, term, claimant, token)
}

/// The token to which an operator has raised the mark of row `f`. A table of an earlier set-up has no such
/// column, and its marks are read all the same. By the server's own operators, whatever the session's search
/// path.
pub(super) const BUMPED_TOKEN: &str =
    "(pg_catalog.to_jsonb(f) OPERATOR(pg_catalog.->>) 'bumped_token'::text)::bigint";

fn resource_of(row: &Row) -> String {
    row.try_get::<_, Option<String>>(1)
        .ok()
        .flatten()
        .unwrap_or_default()
}

impl Site {
    /// The mark of `resource`, with its refusals.
    pub(super) async fn kept(&self, resource: &ResourceName) -> Result<Option<Kept>, StoreError> {
        let parameters: [Typed<'_>; 1] = [(&resource.as_str(), Type::TEXT)];
        let found = self
            .rows(
                &subject(resource),
                "f.resource OPERATOR(pg_catalog.=) $1",
                &parameters,
            )
            .await?;
        found.first().map(|row| self.read_kept(row)).transpose()
    }

    /// A page of marks after `after`.
    pub(super) async fn marks(&self, after: Option<&Cursor>) -> Result<MarkPage, StoreError> {
        let after = after.map_or("", Cursor::as_text);
        let parameters: [Typed<'_>; 1] = [(&after, Type::TEXT)];
        let found = self
            .rows("the fence", "f.resource OPERATOR(pg_catalog.>) $1", &parameters)
            .await?;
        let listed = found.iter().map(|row| {
            let (resource, read) = (resource_of(row), self.read_kept(row).map(|kept| kept.mark));
            let listed = ListedMark::from_read(|| shortened(&resource), read)?;
            Ok((Cursor::behind(resource), listed))
        });
        Ok(MarkPage::beginning(
            listed.collect::<Result<Vec<_>, StoreError>>()?,
        ))
    }

    async fn rows(
        &self,
        subject: &str,
        condition: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let schema = self.schema();
        let statement = format!(
            "SELECT replica, found.* FROM (SELECT pg_catalog.pg_is_in_recovery() AS replica) server LEFT JOIN LATERAL \
             (SELECT f.resource, f.lease, f.token, r.refused, r.last_token, {BUMPED_TOKEN} FROM {schema}.fences f \
             LEFT JOIN {schema}.refusals r ON r.resource OPERATOR(pg_catalog.=) f.resource WHERE {condition} \
             ORDER BY f.resource LIMIT {MARKS_MAX} + 1) found ON true"
        );
        let rows = self.ask(Deed::Read, subject, &statement, parameters).await?;
        self.by_primary(subject, rows, COLUMNS)
    }

    fn read_kept(&self, row: &Row) -> Result<Kept, StoreError> {
        let text = |index| row.try_get::<_, Option<String>>(index).ok().flatten();
        let number = |index| row.try_get::<_, Option<i64>>(index).ok().flatten();
        let resource = resource_of(row);
        let mark = Mark {
            refused: number(4).and_then(|count| u64::try_from(count).ok()).unwrap_or(0),
            last_refused: number(5).and_then(|token| FencingToken::from_signed(token).ok()),
            ..self.understood(&resource, text(2).as_deref(), number(3))?
        };
        Ok(Kept::new(mark, number(6)))
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
                "fence \"{resource}\" in {schema}.fences: column {column} is no valid value; it was left as it is; mend it, \
                 or {REMOVE_MARK}"
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
            bumped: lease.is_none(),
            refused: 0,
            last_refused: None,
        })
    }
}
