//! Reading a page of records.

use crate::keys::Keys;
use crate::record::{shown, unreadable};
use crate::swap::Kv;
use futures_util::stream::{self, StreamExt as _};
use tenure_core::{Cursor, LeaseName, ListedRecord, Page, RecordPage, StoreError};

/// Most records, or marks, of a page that are being read at once.
pub(crate) const READS_MAX: usize = 64;

const SUBJECT: &str = "the list of leases";

impl Kv {
    /// Reads a page: the names from the stream's leader, then each record from it.
    pub(crate) async fn page(&self, page: &Page) -> Result<RecordPage, StoreError> {
        let (keys, next) = self.page_of_keys(page).await?;
        let read = stream::iter(keys.into_iter().map(|key| self.listed(key))).buffered(READS_MAX);
        let listed: Vec<Result<Option<ListedRecord>, StoreError>> = read.collect().await;
        let listed: Result<Vec<_>, StoreError> = listed.into_iter().collect();
        Ok(RecordPage {
            records: listed?.into_iter().flatten().collect(),
            next,
        })
    }

    /// The keys of a page, in their order, and where the next page begins.
    pub(crate) async fn page_of_keys(
        &self,
        page: &Page,
    ) -> Result<(Vec<Key<LeaseName>>, Option<Cursor>), StoreError> {
        let mut keys = self.keys_after(page).await?;
        let limit = usize::from(page.limit);
        let more = keys.len() > limit;
        keys.truncate(limit);
        let last = keys.last().map(Key::place);
        Ok((keys, last.filter(|_| more)))
    }

    /// The keys of a page and of all after it, in their order.
    async fn keys_after(&self, page: &Page) -> Result<Vec<Key<LeaseName>>, StoreError> {
        let pick = |subject: &str| {
            let key = Key::new(&self.keys, subject, self.keys.name(subject));
            page.holds(key.place().as_bytes()).then_some(key)
        };
        let of = self.keys.leases();
        let mut keys = self.link.subjects(&self.stream, &of, SUBJECT, pick).await?;
        keys.sort_by_cached_key(Key::place);
        Ok(keys)
    }

    async fn listed(&self, key: Key<LeaseName>) -> Result<Option<ListedRecord>, StoreError> {
        let Some(name) = key.name else {
            let key_shown = shown(self.keys.key(&key.subject));
            let error = unreadable(&key_shown, &key.escaped, "no lease has this key");
            return Ok(Some(ListedRecord::Unreadable {
                key: key_shown,
                error,
            }));
        };
        let Some(stored) = self.link.last(&self.stream, &key.subject, SUBJECT).await? else {
            // Removed since the names were read.
            return Ok(None);
        };
        Ok(match self.version(name.as_str(), stored) {
            Ok(version) => version.map(|version| ListedRecord::Record { name, version }),
            Err(error) => Some(ListedRecord::Unreadable {
                key: shown(name.as_str()),
                error,
            }),
        })
    }
}

/// A key that is to be listed, of a lease or of a mark.
pub(crate) struct Key<Name> {
    pub(crate) subject: String,
    pub(crate) escaped: String,
    /// `None` where nothing that is listed can have it.
    pub(crate) name: Option<Name>,
}

impl<Name> Key<Name>
where
    for<'name> Cursor: From<&'name Name>,
{
    /// The key of this subject, and the name that it has.
    pub(crate) fn new(keys: &Keys, subject: &str, name: Option<Name>) -> Self {
        let key = keys.key(subject);
        let escaped = key.split_once('.').map_or(key, |(_kind, escaped)| escaped);
        Self {
            subject: subject.to_owned(),
            escaped: escaped.to_owned(),
            name,
        }
    }

    /// Where it stands among the others. What is no name stands behind the name that it looks like.
    pub(crate) fn place(&self) -> Cursor {
        match &self.name {
            Some(name) => Cursor::from(name),
            None => Cursor::behind(format!("{}\0", self.escaped)),
        }
    }
}
