//! Reading a page of records.

use crate::connect::refused;
use crate::record::{shown, unreadable};
use crate::swap::Kv;
use futures_util::stream::{self, StreamExt as _};
use tenure_core::{Cursor, LeaseName, ListedRecord, Page, RecordPage, StoreError};
use tenure_remote::Deed;

/// Most records of a page that are being read at once.
pub(crate) const READS_MAX: usize = 64;

/// Most answers with names that are asked for, each of up to 100,000: more records than that many are not listed.
const ANSWERS_MAX: usize = 100;

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
    pub(crate) async fn page_of_keys(&self, page: &Page) -> Result<(Vec<Key>, Option<Cursor>), StoreError> {
        let mut keys = self.keys_after(page).await?;
        let limit = usize::from(page.limit);
        let more = keys.len() > limit;
        keys.truncate(limit);
        let last = keys.last().map(Key::place);
        Ok((keys, last.filter(|_| more)))
    }

    /// The keys of a page and of all after it, in their order.
    async fn keys_after(&self, page: &Page) -> Result<Vec<Key>, StoreError> {
        let mut keys = Vec::new();
        let mut offset = 0;
        for _answer in 0..ANSWERS_MAX {
            let info = self
                .link
                .info(&self.stream, Some((&self.keys.leases(), offset)), SUBJECT)
                .await?;
            let info = info.map_err(|refusal| refused(Deed::Read, SUBJECT, self.link.place(), &refusal))?;
            let subjects = info["state"]["subjects"].as_object();
            let count = subjects.map_or(0, serde_json::Map::len);
            offset += count;
            let wanted = |key: &Key| page.holds(key.place().as_bytes());
            let all = subjects
                .into_iter()
                .flatten()
                .map(|(subject, _count)| self.key_of(subject));
            keys.extend(all.filter(wanted));
            let total = info["total"]
                .as_u64()
                .and_then(|total| usize::try_from(total).ok());
            if count == 0 || total.is_none_or(|total| offset >= total) {
                break;
            }
        }
        keys.sort_by_cached_key(Key::place);
        Ok(keys)
    }

    fn key_of(&self, subject: &str) -> Key {
        let key = self.keys.key(subject);
        let escaped = key.split_once('.').map_or(key, |(_leases, escaped)| escaped);
        Key {
            subject: subject.to_owned(),
            escaped: escaped.to_owned(),
            name: self.keys.name(subject),
        }
    }

    async fn listed(&self, key: Key) -> Result<Option<ListedRecord>, StoreError> {
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

/// The key of a record that is to be listed.
pub(crate) struct Key {
    subject: String,
    escaped: String,
    /// `None` where no lease can have it.
    pub(crate) name: Option<LeaseName>,
}

impl Key {
    /// Where it stands among the others. What is no name stands behind the name that it looks like.
    fn place(&self) -> Cursor {
        match &self.name {
            Some(name) => Cursor::from(name),
            None => Cursor::behind(format!("{}\0", self.escaped)),
        }
    }
}
