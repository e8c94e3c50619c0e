//! Reading, and the one request that only leaves a wish.

use crate::record::{Record, read, shortened};
use crate::row::{number, text};
use crate::schema::{ALL_ROWS, NOW_US, RECORD, TAKES_NO_WRITES, call, literal};
use crate::site::{Site, subject};
use mysql_async::Row;
use tenure_core::{Ask, Asked, Cursor, Fault, LeaseName, LeasePage, Listed, Page, Selection, StoreError};
use tenure_remote::Deed;

/// Where what was asked for begins in a row of [`Site::ask_now`].
pub(crate) const FOUND_AT: usize = 2;

/// Whether the server takes no writes, whether the session commits by itself, and the moment: what
/// [`Site::ask_now`] looks at.
pub(crate) fn server() -> String {
    format!("SELECT {TAKES_NO_WRITES} AS replica, @@SESSION.autocommit AS alone, {NOW_US} AS moment")
}

impl Site {
    /// Leaves the wish in the record of the very term, if it is held. Asking twice writes once.
    pub(crate) async fn leave_wish(&self, request: &Ask) -> Result<Asked, StoreError> {
        let token = request.token.signed().to_string();
        let statement = call("ask", &[literal(request.name.as_str()), token]);
        let subject = subject(&request.name);
        let rows = self.ask(Deed::Write, &subject, &statement).await?;
        match rows.first().and_then(|row| number(row, 0)) {
            Some(1) => Ok(Asked::Noted),
            Some(0) => {
                // Or there is a record that cannot be understood.
                self.read(&request.name).await?;
                Ok(Asked::NotHeld)
            }
            Some(_) | None => Err(self.without_verdict(&subject)),
        }
    }

    /// Reads one record, from a server that takes writes.
    pub(crate) async fn read(&self, name: &LeaseName) -> Result<Option<Record>, StoreError> {
        let condition = format!("WHERE name = {}", literal(name.as_str()));
        let found = self.look(&subject(name), &condition).await?;
        let record = found.first().map(|row| read(row, FOUND_AT, &self.table()));
        record.transpose()
    }

    /// Reads a page.
    pub(crate) async fn list(&self, page: &Page) -> Result<LeasePage, StoreError> {
        page.check()?;
        let condition = match page.selection {
            Selection::All => "",
            Selection::Held => " AND released_us IS NULL",
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
        let limit = usize::from(limit);
        let after = after.map_or("", Cursor::as_text);
        let (text, characters) = (literal(prefix), prefix.chars().count());
        // The comparison of texts ignores spaces at their ends, that of bytes does not. One more than asked
        // for tells whether there is a next page.
        let condition = format!(
            "WHERE name >= {text} AND CAST(LEFT(name, {characters}) AS BINARY) = CAST({text} AS BINARY) AND name > \
             {}{condition} ORDER BY name LIMIT {}",
            literal(after),
            limit + 1
        );
        let mut found = self.look(subject, &condition).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().map(|row| Cursor::behind(key(row)));
        Ok((found, last.filter(|_| more)))
    }

    fn listed(&self, row: &Row) -> Listed {
        match read(row, FOUND_AT, &self.table()) {
            Ok(record) => Listed::Lease(record.lease),
            Err(error) => Listed::Unreadable {
                key: shortened(key(row)),
                error,
            },
        }
    }

    /// Rows of records: what [`server`] tells, the record.
    ///
    /// # Errors
    /// As [`Site::ask_now`].
    pub(crate) async fn look(&self, subject: &str, condition: &str) -> Result<Vec<Row>, StoreError> {
        let statement = format!(
            "SELECT server.replica, server.alone, {RECORD} FROM ({}) server LEFT JOIN (SELECT * FROM tenure_leases \
             {condition}) lease ON TRUE ORDER BY lease.name {ALL_ROWS}",
            server()
        );
        let mut rows = self.ask_now(subject, &statement).await?;
        rows.retain(|row| text(row, FOUND_AT).is_some());
        Ok(rows)
    }

    /// The rows of a question that is answered as it is now: each begins with what [`server`] tells, and
    /// there is always one, so that a replica is noticed where nothing is found, too.
    ///
    /// # Errors
    /// A replica's answer may be old, and is none; neither is one from a transaction that began some time
    /// ago.
    pub(crate) async fn ask_now(&self, subject: &str, statement: &str) -> Result<Vec<Row>, StoreError> {
        let rows = self.ask(Deed::Read, subject, statement).await?;
        if rows.iter().any(|row| number(row, 0) != Some(0)) {
            self.leave_server();
            let message = format!(
                "{subject} at {}: a server that takes no writes answered, which may lag; name the primary in the URL",
                self.place()
            );
            return Err(StoreError::not_applied(Fault::Unreachable, message));
        }
        if rows.iter().any(|row| number(row, 1) != Some(1)) {
            let why = "autocommit is off for this session, so the answer may be from long ago; SET GLOBAL autocommit = 1";
            return Err(self.unfit(Fault::Unsupported, why));
        }
        Ok(rows)
    }
}

fn key(row: &Row) -> &str {
    text(row, FOUND_AT).unwrap_or_default()
}
