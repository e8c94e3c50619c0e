//! Where refusals are noted: in a document beside the mark.

use super::mark;
use mongodb::Collection;
use mongodb::bson::{Document, doc};
use tenure_core::{FencingToken, ResourceName};
use tenure_remote::Notes;

/// The marks of one collection.
#[derive(Debug)]
pub(super) struct Beside(pub(super) Collection<Document>);

impl Notes for Beside {
    async fn note(&self, resource: &ResourceName, count: u64, last: FencingToken) -> Result<(), String> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let update = doc! {
            "$inc": { "count": count },
            "$set": { "last": last.signed() },
            "$currentDate": { "at": true },
        };
        let noting = self
            .0
            .update_one(doc! { "_id": mark::refusals_id(resource) }, update)
            .upsert(true);
        // Not in the driver's words: they may quote the whole command.
        let noted = noting.await.map(drop);
        noted.map_err(|_quotes| "the database refused or did not answer".to_owned())
    }
}
