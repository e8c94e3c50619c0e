//! Removing the records that nobody uses, a page at a time.

use crate::look::FOUND_AT;
use crate::record::read;
use crate::schema::{ALL_ROWS, NOW_US, literal};
use crate::site::Site;
use tenure_core::{PURGE_TTLS_MIN, Purge, Purged, Purging, StoreError};

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
        let understood = rows
            .iter()
            .filter_map(|row| read(row, FOUND_AT, &self.table()).ok());
        let names: Vec<String> = understood
            .map(|record| literal(record.lease.name.as_str()))
            .collect();
        if names.is_empty() {
            return Ok(Purged {
                unused: Vec::new(),
                removed: 0,
                next,
            });
        }
        let condition = condition(&names, request.unused_for_ms());
        let unused = self.look(SUBJECT, &condition).await?;
        let removed = match request.purging {
            Purging::OnlyLooks => 0,
            Purging::Removes if unused.is_empty() => 0,
            Purging::Removes => {
                // Once more with the condition, as somebody may have taken one since it was read; and past
                // those that somebody keeps locked: a wait for one would keep locked what was found before
                // it. Neither server has a removal that passes by, so they are found apart, which the limit
                // ensures.
                let statement = format!(
                    "DELETE gone FROM (SELECT name FROM tenure_leases FORCE INDEX (PRIMARY) {condition} {ALL_ROWS} FOR UPDATE \
                     SKIP LOCKED) idle STRAIGHT_JOIN tenure_leases gone FORCE INDEX (PRIMARY) ON gone.name = idle.name"
                );
                self.change(SUBJECT, &statement).await?
            }
        };
        let unused = unused
            .iter()
            .map(|row| Ok(read(row, FOUND_AT, &self.table())?.lease.name));
        Ok(Purged {
            unused: unused.collect::<Result<_, StoreError>>()?,
            removed,
            next,
        })
    }
}

/// Of these names, as literals, the records that nobody uses. A released record's `expires_us` is when it
/// ended, so that one comparison serves both; and the next token of the name starts from the clock. By a
/// clock that may be as old as the statement that takes the name next: so the token must be as far behind.
fn condition(names: &[String], unused_for_ms: i64) -> String {
    let (asked_us, ttls) = (unused_for_ms * 1000, u64::from(PURGE_TTLS_MIN) * 1000);
    let unused_since = format!("{NOW_US} - GREATEST({asked_us}, ttl_ms * {ttls})");
    format!(
        "WHERE name IN ({}) AND expires_us <= {unused_since} AND token < ({unused_since}) DIV 1000",
        names.join(", "),
    )
}
