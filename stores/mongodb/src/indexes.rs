//! TTL indexes: one on `expiresAt` deletes tokens and is not ours; one on `purgeAt` is, if asked for.

use crate::fault::{Deed, server_code, store_error};
use crate::site::Site;
use mongodb::IndexModel;
use mongodb::bson::doc;
use mongodb::options::IndexOptions;
use std::time::Duration;
use tenure_core::StoreError;

/// The collection does not exist: it has no index.
const NAMESPACE_NOT_FOUND: i32 = 26;

/// The user may not list indexes.
const UNAUTHORIZED: i32 = 13;

/// An index that deletes records when a field's date has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TtlIndex {
    pub(crate) name: String,
    pub(crate) field: String,
}

impl TtlIndex {
    /// Whether it deletes records by a date other than `purgeAt`: with the record goes its token.
    pub(crate) fn is_harmful(&self) -> bool {
        self.field != "purgeAt"
    }

    /// The command that removes it.
    pub(crate) fn removal(&self, collection: &str) -> String {
        format!("db.{collection}.dropIndex(\"{}\")", self.name)
    }
}

/// The TTL indexes of the collection; `None` if this user may not know.
pub(crate) async fn ttl_indexes(site: &Site) -> Result<Option<Vec<TtlIndex>>, StoreError> {
    let listed = async {
        let mut indexes = Vec::new();
        let mut cursor = site.leases.list_indexes().await?;
        while cursor.advance().await? {
            indexes.push(cursor.deserialize_current()?);
        }
        Ok::<_, mongodb::error::Error>(indexes)
    };
    let indexes: Vec<IndexModel> = match listed.await {
        Ok(indexes) => indexes,
        Err(error) if server_code(&error) == Some(NAMESPACE_NOT_FOUND) => return Ok(Some(Vec::new())),
        Err(error) if server_code(&error) == Some(UNAUTHORIZED) => return Ok(None),
        Err(error) => {
            return Err(store_error(
                &error,
                Deed::Read,
                "the list of indexes",
                &site.place,
            ));
        }
    };
    let ttl = |index: IndexModel| {
        let options = index.options?;
        options.expire_after?;
        Some(TtlIndex {
            name: options.name.unwrap_or_default(),
            field: index.keys.keys().next().cloned().unwrap_or_default(),
        })
    };
    Ok(Some(indexes.into_iter().filter_map(ttl).collect()))
}

/// Warns of an index that deletes leases with their tokens. No error: the next token still rises, since the
/// clock is its floor, and a running service must not stop for it; `examine` calls it bad.
pub(crate) async fn warn_of_expiry_index(site: &Site) -> Result<(), StoreError> {
    for index in ttl_indexes(site).await?.unwrap_or_default() {
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
    Ok(())
}

/// Makes the index that removes unused names, where that was asked for.
pub(crate) async fn ensure_purge_index(site: &Site) -> Result<(), StoreError> {
    if site.purge_after.is_none() {
        return Ok(());
    }
    let options = IndexOptions::builder().expire_after(Duration::ZERO).build();
    let index = IndexModel::builder()
        .keys(doc! { "purgeAt": 1 })
        .options(options)
        .build();
    site.leases
        .create_index(index)
        .await
        .map(|_created| ())
        .map_err(|error| store_error(&error, Deed::Read, "the TTL index on purgeAt", &site.place))
}
