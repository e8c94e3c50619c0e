//! Reading, and the one request that only leaves a wish.

use crate::fault::Deed;
use crate::record::{COLUMNS, Record, read, shortened};
use crate::schema::RECORD;
use crate::site::{Site, Typed, subject};
use tenure_core::{Ask, Asked, Cursor, Fault, LeaseName, LeasePage, Listed, Page, Selection, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

impl Site {
    /// Leaves the wish in the record of the very term, if it is held. Asking twice writes once.
    pub(crate) async fn leave_wish(&self, request: &Ask) -> Result<Asked, StoreError> {
        let statement = format!("SELECT {}.ask($1, $2)", self.schema());
        let subject = subject(&request.name);
        let (name, token) = (request.name.as_str(), request.token.signed());
        let parameters: [Typed<'_>; 2] = [(&name, Type::TEXT), (&token, Type::INT8)];
        let rows = self.ask(Deed::Write, &subject, &statement, &parameters).await?;
        match rows.first().and_then(|row| row.try_get(0).ok()) {
            Some(true) => Ok(Asked::Noted),
            Some(false) => {
                // Or there is a record that cannot be understood.
                self.read(&request.name).await?;
                Ok(Asked::NotHeld)
            }
            None => Err(self.without_verdict(&subject)),
        }
    }

    /// Reads one record, from a server that takes writes.
    pub(crate) async fn read(&self, name: &LeaseName) -> Result<Option<Record>, StoreError> {
        let found = self
            .look(
                &subject(name),
                "lease.name OPERATOR(pg_catalog.=) $1",
                "LIMIT 1",
                &[(&name.as_str(), Type::TEXT)],
            )
            .await?;
        let record = found.first().map(|row| read(row, 1, &self.table())).transpose()?;
        match record {
            Some(record) if record.lease.name != *name => Err(self.crossed(&subject(name))),
            record => Ok(record),
        }
    }

    /// Reads a page.
    pub(crate) async fn list(&self, page: &Page) -> Result<LeasePage, StoreError> {
        page.check()?;
        let condition = match page.selection {
            Selection::All => "",
            Selection::Held => " AND lease.released_at IS NULL",
        };
        let subject = "the list of leases";
        let (found, next) = self
            .page(subject, condition, &page.prefix, page.after.as_ref(), page.limit)
            .await?;
        Ok(LeasePage {
            next,
            leases: found.iter().map(|row| self.listed(row)).collect(),
        })
    }

    /// The rows of a page, as of [`Site::look`], and where the next one begins.
    pub(crate) async fn page(
        &self,
        subject: &str,
        condition: &str,
        prefix: &str,
        after: Option<&Cursor>,
        limit: u16,
    ) -> Result<(Vec<Row>, Option<Cursor>), StoreError> {
        // No name has a NUL, and the server knows no text with one.
        if prefix.contains('\0') {
            return Ok((Vec::new(), None));
        }
        let limit = usize::from(limit);
        let after = after.map_or("", Cursor::as_text);
        // One more than asked for tells whether there is a next page.
        let mut found = self
            .look(
                subject,
                &format!(
                    "pg_catalog.starts_with(lease.name, $1) AND lease.name OPERATOR(pg_catalog.>=) $1 AND lease.name \
                     OPERATOR(pg_catalog.>) $2{condition}"
                ),
                &format!("ORDER BY lease.name LIMIT {}", limit + 1),
                &[(&prefix, Type::TEXT), (&after, Type::TEXT)],
            )
            .await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().map(|row| Cursor::behind(key(row)));
        Ok((found, last.filter(|_| more)))
    }

    fn listed(&self, row: &Row) -> Listed {
        match read(row, 1, &self.table()) {
            Ok(record) => Listed::Lease(record.lease),
            Err(error) => Listed::Unreadable {
                key: shortened(&key(row)),
                error,
            },
        }
    }

    /// Rows of records: first whether the server is a replica, then the record.
    ///
    /// # Errors
    /// A replica's answer may be old, and is none; the next request looks for the primary. Nor is the answer
    /// to another request: see [`Site::crossed`].
    pub(crate) async fn look(
        &self,
        subject: &str,
        condition: &str,
        end: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        // The left join always gives a row, so a replica is noticed where nothing is found, too, and what is
        // no answer to this.
        let statement = format!(
            "SELECT replica, found.* FROM (SELECT pg_is_in_recovery() AS replica) server LEFT JOIN LATERAL (SELECT {RECORD} \
             FROM {}.leases lease, (SELECT clock_timestamp() AS moment OFFSET 0) clock WHERE {condition} {end}) \
             found ON true",
            self.schema()
        );
        let rows = self.ask(Deed::Read, subject, &statement, parameters).await?;
        self.by_primary(subject, rows, COLUMNS)
    }

    /// What was found, of rows that begin with whether the server is a replica, and go on with so many
    /// columns: of nulls, where nothing was.
    ///
    /// # Errors
    /// As [`Site::look`].
    pub(crate) fn by_primary(
        &self,
        subject: &str,
        mut rows: Vec<Row>,
        columns: usize,
    ) -> Result<Vec<Row>, StoreError> {
        if rows.is_empty() || rows.iter().any(|row| row.len() != 1 + columns) {
            return Err(self.crossed(subject));
        }
        if rows.iter().any(|row| row.try_get(0).unwrap_or(true)) {
            return Err(self.by_replica(subject));
        }
        rows.retain(|row| !matches!(row.try_get::<_, Option<&str>>(1), Ok(None)));
        Ok(rows)
    }

    /// For what a replica has answered. The next request looks for the primary.
    pub(crate) fn by_replica(&self, subject: &str) -> StoreError {
        for lane in self.requests.iter().chain(&self.claims) {
            lane.close();
        }
        let message = format!(
            "{subject} at {}: a replica answered, which may lag; name the primary in the URL, or all hosts",
            self.place
        );
        StoreError::not_applied(Fault::Unreachable, message)
    }
}

fn key(row: &Row) -> String {
    row.try_get::<_, String>(1).unwrap_or_default()
}
