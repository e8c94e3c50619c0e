//! What kind of collection holds the records: some kinds forget records, or take two names for one.

use crate::fault::Deed;
use crate::site::Site;
use mongodb::bson::{Document, deserialize_from_slice, doc};
use tenure_core::{Fault, StoreError};

impl Site {
    /// What the server says of the collection; `None` if there is none yet.
    pub(crate) async fn described(&self) -> Result<Option<Document>, StoreError> {
        let named = doc! { "name": self.leases.name() };
        let list = async {
            let mut cursor = self.database.list_collections().filter(named).await?;
            match cursor.advance().await? {
                true => Ok(Some(deserialize_from_slice(cursor.current().as_bytes())?)),
                false => Ok(None),
            }
        };
        self.within(Deed::Read, "the collection", list).await
    }
}

/// Why no lease is safe in a collection that the server describes so.
pub(crate) fn unfit(described: &Document) -> Option<String> {
    let kind = described.get_str("type").unwrap_or("collection");
    let options = described.get_document("options").cloned().unwrap_or_default();
    if kind != "collection" {
        return Some(format!("is a {kind}"));
    }
    if options.get_bool("capped").unwrap_or(false) {
        return Some("is capped: the server removes leases that are held when it is full".to_owned());
    }
    options
        .contains_key("collation")
        .then(|| "has a collation: names that differ only in case or accent are one lease".to_owned())
}

/// What to do instead.
pub(crate) fn way_out(collection: &str) -> String {
    format!("keep leases in a plain collection: db.createCollection(\"{collection}\"), or another name")
}

/// Refuses a collection in which two could hold one lease, as far as this user may see what it is.
pub(crate) async fn refuse_unfit(site: &Site) -> Result<(), StoreError> {
    let described = match site.described().await {
        Err(error) if error.fault == Fault::Forbidden => None,
        described => described?,
    };
    match described.as_ref().and_then(unfit) {
        None => Ok(()),
        Some(why) => Err(StoreError::not_applied(
            Fault::Unsupported,
            format!(
                "the collection at {} {why}; {}",
                site.place,
                way_out(site.leases.name())
            ),
        )),
    }
}
