//! Reading marks.

use super::subject;
use crate::look::{FOUND_AT, server};
use crate::record::shortened;
use crate::row::{number, text};
use crate::schema::{ALL_ROWS, literal};
use crate::site::Site;
use mysql_async::Row;
use tenure_core::{
    Cursor, Fault, FenceError, FencingToken, LeaseName, ListedMark, MARKS_MAX, Mark, MarkPage, REMOVE_MARK,
    ResourceName, StoreError, Term, check_owner, decide_entry,
};

/// A mark, and who has claimed it.
pub(super) struct Kept {
    pub(super) mark: Mark,
}

impl Kept {
    /// By the column of that name: the token and not a word, as a claim by an earlier Tenure raises the mark
    /// past it, and knows nothing of it.
    fn new(mark: Mark, bumped_token: Option<i64>) -> Self {
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

impl Site {
    /// The mark of `resource`, with its refusals.
    pub(super) async fn kept(&self, resource: &ResourceName) -> Result<Option<Kept>, StoreError> {
        let condition = format!("f.resource = {}", literal(resource.as_str()));
        let found = self.rows(&subject(resource), &condition).await?;
        found.first().map(|row| self.read_kept(row)).transpose()
    }

    /// A page of marks after `after`.
    pub(super) async fn marks(&self, after: Option<&Cursor>) -> Result<MarkPage, StoreError> {
        let condition = format!("f.resource > {}", literal(after.map_or("", Cursor::as_text)));
        let found = self.rows("the fence", &condition).await?;
        let listed = found.iter().map(|row| {
            let resource = text(row, FOUND_AT).unwrap_or_default();
            let read = self.read_kept(row).map(|kept| kept.mark);
            let listed = ListedMark::from_read(|| shortened(resource), read)?;
            Ok((Cursor::behind(resource), listed))
        });
        Ok(MarkPage::beginning(
            listed.collect::<Result<Vec<_>, StoreError>>()?,
        ))
    }

    async fn rows(&self, subject: &str, condition: &str) -> Result<Vec<Row>, StoreError> {
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
        let mut rows = self.ask_now(subject, &statement).await?;
        rows.retain(|row| text(row, FOUND_AT).is_some());
        Ok(rows)
    }

    fn read_kept(&self, row: &Row) -> Result<Kept, StoreError> {
        let [resource, lease, token, refused, last_refused, bumped] =
            std::array::from_fn(|column| FOUND_AT + column);
        let mark = Mark {
            refused: number(row, refused)
                .and_then(|count| u64::try_from(count).ok())
                .unwrap_or(0),
            last_refused: number(row, last_refused).and_then(|token| FencingToken::from_signed(token).ok()),
            ..self.understood(
                text(row, resource).unwrap_or_default(),
                text(row, lease),
                number(row, token),
            )?
        };
        Ok(Kept::new(mark, number(row, bumped)))
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
                 it, or {REMOVE_MARK}"
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
