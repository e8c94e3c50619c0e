//! What kind of collection holds the records: some kinds forget records, or take two names for one.

use crate::fault::{Deed, server_code};
use crate::site::Site;
use mongodb::bson::{Document, deserialize_from_slice, doc};
use mongodb::options::CursorType;
use std::future::Future;
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
        return Some(IS_CAPPED.to_owned());
    }
    options
        .contains_key("collation")
        .then(|| HAS_A_COLLATION.to_owned())
}

impl Site {
    /// Why no lease is safe in the collection, as far as it shows to who may only find something in it.
    /// `None` also where it cannot be told.
    pub(crate) async fn unfit_as_found(&self) -> Result<Option<String>, StoreError> {
        let find = doc! { "find": self.leases.name(), "filter": { "_id": "" }, "limit": 1 };
        let explain = self
            .database
            .run_command(doc! { "explain": find, "verbosity": "queryPlanner" });
        let explained = self.told("the collection", explain.into_future()).await?;
        let planner = explained
            .as_ref()
            .and_then(|told| told.get_document("queryPlanner").ok());
        if planner.is_some_and(|planner| planner.contains_key("collation")) {
            return Ok(Some(HAS_A_COLLATION.to_owned()));
        }
        let plan = planner.and_then(|planner| planner.get_document("winningPlan").ok());
        // Where there is no collection yet, whatever is asked is answered with nothing.
        let exists = plan.is_some_and(|plan| !plan.to_string().contains("\"EOF\""));
        let tail = self
            .leases
            .find(doc! {})
            .projection(doc! { "_id": 1 })
            .cursor_type(CursorType::Tailable)
            .batch_size(1);
        let has_an_end = exists && self.told("the collection", tail.into_future()).await?.is_some();
        // The server follows the end of no other.
        Ok(has_an_end.then(|| IS_CAPPED.to_owned()))
    }

    /// What a server answers; `None` where it refuses.
    async fn told<T>(
        &self,
        subject: &str,
        asked: impl Future<Output = mongodb::error::Result<T>>,
    ) -> Result<Option<T>, StoreError> {
        let answer = async {
            match asked.await {
                Err(error) if server_code(&error).is_some() => Ok(None),
                answer => answer.map(Some),
            }
        };
        self.within(Deed::Read, subject, answer).await
    }
}

const IS_CAPPED: &str = "is capped: the server removes leases that are held when it is full";

const HAS_A_COLLATION: &str = "has a collation: names that differ only in case or accent are one lease";

/// What to do instead.
pub(crate) fn way_out(collection: &str) -> String {
    format!("keep leases in a plain collection: db.createCollection(\"{collection}\"), or another name")
}

/// Refuses a collection in which two could hold one lease, as far as this user may see what it is.
pub(crate) async fn refuse_unfit(site: &Site) -> Result<(), StoreError> {
    let why = match site.described().await {
        Err(error) if error.fault == Fault::Forbidden => site.unfit_as_found().await?,
        described => described?.as_ref().and_then(unfit),
    };
    match why {
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
