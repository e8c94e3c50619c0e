use crate::fault::Deed;
use crate::identity;
use crate::record::{decode, projection, shown_key};
use crate::site::Site;
use mongodb::bson::{Bson, Document, doc};
use tenure_core::{Cursor, LeasePage, Listed, Page, Selection, StoreError};

impl Site {
    /// Reads a page.
    pub(crate) async fn list(&self, page: &Page) -> Result<LeasePage, StoreError> {
        page.check()?;
        let read = async {
            match page.selection {
                Selection::All => self.all(page).await,
                Selection::Held => self.held(page).await,
            }
        };
        self.in_time(Deed::Read, "the list of leases", read).await
    }

    /// Keys that are no text have no place in the order of names: as many as the last page has room for come
    /// last. Where that is full, another one follows for them.
    async fn all(&self, page: &Page) -> Result<LeasePage, StoreError> {
        let of_page = of_page(&page.prefix, page.after.as_ref());
        let (mut found, mut next) = self.texts(of_page, page.limit).await?;
        if next.is_none() && page.prefix.is_empty() {
            let room = usize::from(page.limit) - found.len();
            let strange = doc! { "_id": { "$not": { "$type": "string" }, "$ne": identity::key() } };
            let strange = self
                .read_page(strange, i64::try_from(room.max(1)).unwrap_or(1))
                .await?;
            match room {
                0 => next = behind(&found).filter(|_| !strange.is_empty()),
                _ => found.extend(strange),
            }
        }
        Ok(self.page_of(&found, next))
    }

    /// Those that were not given back, and whose keys are text.
    async fn held(&self, page: &Page) -> Result<LeasePage, StoreError> {
        let mut of_page = of_page(&page.prefix, page.after.as_ref());
        of_page.insert("released", Bson::Null);
        let (found, next) = self.texts(of_page, page.limit).await?;
        Ok(self.page_of(&found, next))
    }

    /// So many of what `filter` finds, whose keys are text, and where the next page begins.
    async fn texts(
        &self,
        filter: Document,
        limit: u16,
    ) -> Result<(Vec<Document>, Option<Cursor>), StoreError> {
        // One more than asked for tells whether there is a next page.
        let mut found = self.read_page(filter, i64::from(limit) + 1).await?;
        let more = found.len() > usize::from(limit);
        found.truncate(limit.into());
        let next = behind(&found).filter(|_| more);
        Ok((found, next))
    }

    fn page_of(&self, found: &[Document], next: Option<Cursor>) -> LeasePage {
        let leases = found.iter().map(|document| self.listed(document)).collect();
        LeasePage { leases, next }
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

/// What comes after the last of these.
fn behind(found: &[Document]) -> Option<Cursor> {
    let last = found.last()?.get_str("_id").ok()?;
    Some(Cursor::behind(last))
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
