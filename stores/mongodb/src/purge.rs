//! Removing the records that nobody uses, a page at a time.

use crate::fault::Deed;
use crate::list::of_page;
use crate::record::understood;
use crate::site::Site;
use mongodb::bson::{Bson, Document, bson, doc};
use tenure_core::{Cursor, LeaseName, PURGE_TTLS_MIN, Purge, Purged, Purging, StoreError};

/// What errors are about.
const SUBJECT: &str = "the clean-up of leases";

impl Site {
    /// Reads a page, asks which of it nobody uses, and removes these by the same condition.
    pub(crate) async fn purge(&self, request: &Purge) -> Result<Purged, StoreError> {
        let of_page = of_page(&request.prefix, request.after.as_ref());
        let page = self.names(of_page, i64::from(request.limit)).await?;
        let next = page.last().filter(|_| page.len() == usize::from(request.limit));
        let next = next.map(Cursor::behind);
        let unused = self.unused(&page, request.unused_for_ms()).await?;
        let removed = match request.purging {
            Purging::OnlyLooks => 0,
            Purging::Removes if unused.is_empty() => 0,
            Purging::Removes => {
                // Once more with the condition: somebody may have taken one since it was read.
                let deletion = self
                    .leases
                    .delete_many(condition(&unused, request.unused_for_ms()));
                let deleted = self.within(Deed::Write, SUBJECT, deletion.into_future());
                deleted.await?.deleted_count
            }
        };
        Ok(Purged {
            unused: unused
                .iter()
                .filter_map(|name| LeaseName::new(name).ok())
                .collect(),
            removed,
            next,
        })
    }

    async fn unused(&self, page: &[String], unused_for_ms: i64) -> Result<Vec<String>, StoreError> {
        let limit = i64::try_from(page.len()).expect("a page is at most a thousand names");
        if page.is_empty() {
            return Ok(Vec::new());
        }
        self.names(condition(page, unused_for_ms), limit).await
    }

    async fn names(&self, filter: Document, limit: i64) -> Result<Vec<String>, StoreError> {
        let request = self
            .leases
            .find(filter)
            .sort(doc! { "_id": 1 })
            .limit(limit)
            .batch_size(u32::try_from(limit).unwrap_or(1))
            .projection(doc! { "_id": 1 })
            .max_time(self.time_max);
        let read = async {
            let mut cursor = request.await?;
            let mut names = Vec::new();
            while cursor.advance().await? {
                let document: Document = cursor.deserialize_current()?;
                names.extend(document.get_str("_id").map(str::to_owned));
            }
            Ok(names)
        };
        self.within(Deed::Read, SUBJECT, read).await
    }
}

/// Of these names, the records that can be understood and that nobody uses, by the server's clock. A released
/// record's `expiresAt` is when it ended, so that one comparison serves both.
fn condition(names: &[String], unused_for_ms: i64) -> Document {
    let wait = bson!({ "$max": [unused_for_ms, { "$multiply": ["$ttlMs", i64::from(PURGE_TTLS_MIN)] }] });
    let since = bson!({ "$subtract": ["$$NOW", wait] });
    let unused = bson!({ "$lte": ["$expiresAt", since.clone()] });
    // The next token of the name starts from the clock, which may have been set back a little by then, or be
    // another server's.
    let rises = bson!({ "$lt": ["$generation", { "$toLong": since }] });
    let names: Vec<Bson> = names.iter().map(|name| name.as_str().into()).collect();
    let mut filter = understood();
    let fits = filter.remove("$expr").unwrap_or(Bson::Boolean(true));
    // In this order: what is no record may have anything in these fields.
    filter.insert(
        "$expr",
        doc! { "$cond": [fits, { "$and": [unused, rises] }, false] },
    );
    doc! { "$and": [{ "_id": { "$in": names } }, filter] }
}
