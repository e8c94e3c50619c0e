//! Indexes. A TTL index on `expiresAt` deletes tokens and is not ours; one on `purgeAt` is, if asked for. A
//! unique one that is not that of `_id` refuses leases.

use crate::fault::{Deed, server_code};
use crate::record::projection;
use crate::shell::in_the_shell;
use crate::site::{Site, Topology};
use mongodb::IndexModel;
use mongodb::bson::doc;
use mongodb::options::{CommitQuorum, IndexOptions};
use std::time::Duration;
use tenure_core::StoreError;

/// The collection does not exist: it has no index.
const NAMESPACE_NOT_FOUND: i32 = 26;

/// How long the server may take to make our index. It ends by itself then: nobody waits for it any more.
const PURGE_INDEX_TIME_MAX: Duration = Duration::from_secs(2);

/// The field of the index that is ours.
const PURGE_AT: &str = "purgeAt";

/// The user may not list indexes.
const UNAUTHORIZED: i32 = 13;

/// An index that deletes records when a field's date has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TtlIndex {
    pub(crate) name: String,
    pub(crate) field: String,
}

impl TtlIndex {
    /// Whether it deletes records by a date of theirs other than `purgeAt`: with the record goes its token.
    /// By a field that no lease has it deletes another program's.
    pub(crate) fn is_harmful(&self) -> bool {
        self.field != PURGE_AT && is_ours(&self.field)
    }

    /// Whether it deletes what nobody uses.
    pub(crate) fn is_purging(&self) -> bool {
        self.field == PURGE_AT
    }

    /// The command that removes it.
    pub(crate) fn removal(&self, collection: &str) -> String {
        removal(collection, &self.name)
    }
}

/// The indexes of the collection, for people.
pub(crate) struct Indexes {
    pub(crate) ttl: Vec<TtlIndex>,
    /// The names of those that are unique, and refuse leases for that.
    pub(crate) unique: Vec<String>,
    /// The names of those on `purgeAt` that delete nothing: another on that field cannot be made beside one.
    pub(crate) plain_on_purge_at: Vec<String>,
}

/// Whether leases have a field of this path.
fn is_ours(path: &str) -> bool {
    let field = path.split('.').next().unwrap_or(path);
    field == PURGE_AT || projection().contains_key(field)
}

/// Whether the server may refuse a lease for the sake of this index: one without the field counts as one with
/// null in it, and no two are alike that name `_id`.
fn refuses_leases(index: &IndexModel) -> bool {
    let Some(options) = index
        .options
        .as_ref()
        .filter(|options| options.unique == Some(true))
    else {
        return false;
    };
    let is_for_some = options.sparse == Some(true) || options.partial_filter_expression.is_some();
    let mut fields = index.keys.keys();
    !index.keys.contains_key("_id") && (!is_for_some || fields.any(|field| is_ours(field)))
}

/// The command that removes an index.
pub(crate) fn removal(collection: &str, index: &str) -> String {
    format!("{}.dropIndex(\"{index}\")", in_the_shell(collection))
}

/// The indexes of the collection; `None` if this user may not know.
pub(crate) async fn indexes(site: &Site) -> Result<Option<Indexes>, StoreError> {
    let listed = async {
        let mut indexes = Vec::new();
        let mut cursor = site.leases.list_indexes().await?;
        while cursor.advance().await? {
            indexes.push(cursor.deserialize_current()?);
        }
        Ok::<_, mongodb::error::Error>(indexes)
    };
    let told = async {
        match listed.await {
            Err(error) if server_code(&error) == Some(NAMESPACE_NOT_FOUND) => Ok(Some(Vec::new())),
            Err(error) if server_code(&error) == Some(UNAUTHORIZED) => Ok(None),
            listed => listed.map(Some),
        }
    };
    let told = site.within(Deed::Read, "the list of indexes", told).await?;
    let indexes: Vec<IndexModel> = match told {
        Some(indexes) => indexes,
        None => return Ok(None),
    };
    let mut found = Indexes {
        ttl: Vec::new(),
        unique: Vec::new(),
        plain_on_purge_at: Vec::new(),
    };
    for index in indexes {
        let is_in_the_way = refuses_leases(&index);
        let options = index.options.unwrap_or_default();
        let name = options.name.unwrap_or_default();
        let field = index.keys.keys().next().cloned().unwrap_or_default();
        if is_in_the_way {
            found.unique.push(name.clone());
        }
        if options.expire_after.is_some() {
            found.ttl.push(TtlIndex { name, field });
        } else if field == PURGE_AT && index.keys.len() == 1 {
            found.plain_on_purge_at.push(name);
        }
    }
    Ok(Some(found))
}

/// Warns of indexes that delete leases with their tokens. No error: the next token still rises, since the
/// clock is its floor, and a running service must not stop for it; `examine` calls it bad.
pub(crate) fn warn_of_expiry_indexes(site: &Site, found: Option<&Indexes>) {
    for index in found.iter().flat_map(|found| &found.ttl) {
        if index.is_harmful() {
            tracing::warn!(
                place = %site.place,
                index = %index.name,
                field = %index.field,
                repair = %index.removal(site.leases.name()),
                "a TTL index deletes lease records and their history; drop it"
            );
        }
    }
}

/// Makes the index that removes unused names, where that was asked for and it is not there. Where it cannot
/// be made, or another one is in its way, which removes them later or not at all, that stops nobody: no lease
/// is in danger, and `examine` tells of it.
pub(crate) async fn ensure_purge_index(site: &Site, found: Option<&Indexes>) {
    let is_there = found.is_some_and(|found| found.ttl.iter().any(TtlIndex::is_purging));
    if site.purge_after.is_none() || is_there {
        return;
    }
    let options = IndexOptions::builder().expire_after(Duration::ZERO).build();
    let index = IndexModel::builder()
        .keys(doc! { PURGE_AT: 1 })
        .options(options)
        .build();
    let create = site.leases.create_index(index).max_time(PURGE_INDEX_TIME_MAX);
    // By default all members with data must have built it: one that is down would keep it, and whoever waits
    // for it, for ever. (A standalone server has no members, and does not know the word.)
    let create = match site.topology {
        Topology::Standalone => create,
        Topology::ReplicaSet { .. } | Topology::Sharded => create.commit_quorum(CommitQuorum::Majority),
    };
    let subject = "the TTL index on purgeAt";
    let created = site.within_time(PURGE_INDEX_TIME_MAX, Deed::Read, subject, create.into_future());
    if let Err(error) = created.await {
        tracing::warn!(
            place = %site.place,
            %error,
            "no TTL index on purgeAt was made; names that nobody uses are removed later, or not at all"
        );
    }
}
