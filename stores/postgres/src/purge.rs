//! Removing the records that nobody uses, a page at a time.

use crate::fault::Deed;
use crate::record::read;
use crate::site::{Site, Typed};
use tenure_core::{PURGE_TTLS_MIN, Purge, Purged, Purging, StoreError};
use tokio_postgres::types::Type;

/// What errors are about.
const SUBJECT: &str = "the clean-up of leases";

impl Site {
    /// Reads a page, asks which of it nobody uses, and removes these by the same condition.
    pub(crate) async fn purge(&self, request: &Purge) -> Result<Purged, StoreError> {
        let (rows, next) = self
            .page(
                SUBJECT,
                "",
                &request.prefix,
                request.after.as_ref(),
                request.limit,
            )
            .await?;
        // What cannot be understood is not looked at any further.
        let understood = rows.iter().filter_map(|row| read(row, 1, &self.table()).ok());
        let names: Vec<String> = understood.map(|record| record.lease.name.to_string()).collect();
        let asked_ms = request.unused_for_ms();
        let parameters: [Typed<'_>; 2] = [(&names, Type::TEXT_ARRAY), (&asked_ms, Type::INT8)];
        let condition = condition();
        let unused = self
            .look(SUBJECT, &condition, "ORDER BY lease.name", &parameters)
            .await?;
        let removed = match request.purging {
            Purging::OnlyLooks => 0,
            Purging::Removes if unused.is_empty() => 0,
            Purging::Removes => {
                // Once more with the condition, as somebody may have taken one since it was read; and past
                // those that somebody is taking. Without waiting for the disk: each removal is notified,
                // which keeps every other notification waiting. What a crash takes back of it is removed the
                // next time.
                let leases = format!("{}.leases", self.schema());
                let statement = format!(
                    "DELETE FROM {leases} gone USING (SELECT lease.name FROM {leases} lease, (SELECT clock_timestamp() AS \
                     moment, pg_catalog.set_config('synchronous_commit', 'off', true) OFFSET 0) clock WHERE {condition} FOR \
                     UPDATE OF lease SKIP LOCKED) idle WHERE gone.name OPERATOR(pg_catalog.=) idle.name RETURNING gone.name"
                );
                self.ask(Deed::Write, SUBJECT, &statement, &parameters)
                    .await?
                    .len()
            }
        };
        let unused = unused
            .iter()
            .map(|row| Ok(read(row, 1, &self.table())?.lease.name));
        Ok(Purged {
            unused: unused.collect::<Result<_, StoreError>>()?,
            removed: u64::try_from(removed).unwrap_or(u64::MAX),
            next,
        })
    }
}

/// Of the names `$1`, the records that nobody has used for `$2` milliseconds. A released record's
/// `expires_at` is when it ended, so that one comparison serves both; and the next token of the name starts
/// from the clock, which may have been set back a little by then: so the token must be as far behind. By the
/// server's own operators, as all of a record.
fn condition() -> String {
    let unused_since = format!(
        "(moment OPERATOR(pg_catalog.-) (greatest($2, lease.ttl_ms OPERATOR(pg_catalog.*) {PURGE_TTLS_MIN}) \
         OPERATOR(pg_catalog.*) interval '1 millisecond'))"
    );
    format!(
        "lease.name OPERATOR(pg_catalog.=) ANY ($1) AND lease.expires_at OPERATOR(pg_catalog.<=) {unused_since} \
         AND lease.token OPERATOR(pg_catalog.<) floor(extract(epoch FROM {unused_since}) OPERATOR(pg_catalog.*) 1000)::bigint"
    )
}
