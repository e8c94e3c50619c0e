use crate::fault::Deed;
use crate::record::{decode, projection, shown_key};
use crate::site::Site;
use mongodb::bson::{Document, doc};
use tenure_core::{Cursor, LeasePage, Listed, Page, StoreError};

impl Site {
    /// Reads a page. Keys that are no text have no place in the order of names: as many as the last page has room for come last.
    /// Where that is full, another one follows for them.
    pub(crate) async fn list(&self, page: &Page) -> Result<LeasePage, StoreError> {
        self.in_time(Deed::Read, "the list of leases", self.pages(page))
            .await
    }

    async fn pages(&self, page: &Page) -> Result<LeasePage, StoreError> {
        page.check()?;
        let limit = usize::from(page.limit);
        // One more than asked for tells whether there is a next page.
        let mut found = self
            .read_page(
                of_page(&page.prefix, page.after.as_ref()),
                i64::from(page.limit) + 1,
            )
            .await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found
            .last()
            .and_then(|last| last.get_str("_id").ok())
            .map(str::to_owned);
        let last = last.as_deref();
        let mut next = last.filter(|_| more).map(Cursor::behind);
        if next.is_none() && page.prefix.is_empty() {
            let room = limit - found.len();
            let strange = doc! { "_id": { "$not": { "$type": "string" } } };
            let strange = self
                .read_page(strange, i64::try_from(room.max(1)).unwrap_or(1))
                .await?;
            match room {
                0 => next = last.filter(|_| !strange.is_empty()).map(Cursor::behind),
                _ => found.extend(strange),
            }
        }
        Ok(LeasePage {
            leases: found.iter().map(|document| self.listed(document)).collect(),
            next,
        })
    }

    fn listed(&self, document: &Document) -> Listed {
        match decode(document, &self.namespace) {
            Ok(record) => Listed::Lease(record.lease),
            Err(error) => Listed::Unreadable {
                key: shown_key(document),
                error,
            },
        }
    }

    /// The records that `filter` finds, by their names, as a majority has confirmed them.
    pub(crate) async fn read_page(&self, filter: Document, limit: i64) -> Result<Vec<Document>, StoreError> {
        let request = self
            .leases
            .find(filter)
            .sort(doc! { "_id": 1 })
            .limit(limit)
            .batch_size(u32::try_from(limit).unwrap_or(1))
            .projection(projection())
            .max_time(self.time_max);
        let read = async {
            let mut cursor = request.await?;
            let mut found = Vec::new();
            while cursor.advance().await? {
                found.push(cursor.deserialize_current()?);
            }
            Ok(found)
        };
        self.within(Deed::Read, "records of leases", read).await
    }
}

/// The keys of a page that are text, in a range that the index serves.
pub(crate) fn of_page(prefix: &str, after: Option<&Cursor>) -> Document {
    let mut filter = doc! { "_id": prefix_range(prefix) };
    if let Some(after) = after {
        // Whichever is later; both bounds hold.
        filter.insert("$and", vec![doc! { "_id": { "$gt": after.as_text() } }]);
    }
    filter
}

/// Strings that begin with `prefix`.
pub(crate) fn prefix_range(prefix: &str) -> Document {
    let mut range = doc! { "$type": "string" };
    if !prefix.is_empty() {
        range.insert("$gte", prefix);
    }
    if let Some(end) = prefix_end(prefix) {
        range.insert("$lt", end);
    }
    range
}

/// The least string after all that begin with `prefix`; `None` if there is none.
fn prefix_end(prefix: &str) -> Option<String> {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        // Skips the gap of the surrogates, which are no characters.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}
