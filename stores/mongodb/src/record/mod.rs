//! The record of a lease: one document, the same shape to every reader and writer in this crate.
//!
//! ```text
//! { _id, owner, incarnation, generation, attempt, terms, ttlMs,
//!   createdAt, acquiredAt, lastRenewedAt | null, expiresAt,
//!   released: null | { generation, at }, stepDownAsked: null | { generation, at },
//!   note, previous: null | { owner, generation, end, at }, renewal?: ObjectId, purgeAt?: null | Date }
//! ```
//!
//! `released` and `stepDownAsked` repeat the generation so that a change stream's delta names the term
//! without a second look at a record that may have moved on.

mod decode;
mod shape;

pub(crate) use decode::{Record, decode, shown_key};
pub(crate) use shape::{fits, is_record, lasts_no_longer, readable, understood};

use mongodb::bson::{Bson, Document, doc};
use tenure_core::StoreError;

/// The computed field by which the server tells its clock with an answer.
pub(crate) const STORE_NOW: &str = "storeNow";

/// The field of an answer in which the server shows a record as it is.
const RECORD: &str = "record";

/// What the answer about one lease carries: its record, and the server's clock of the same command. A list of
/// its fields would cost the server as much again.
pub(crate) fn whole() -> Document {
    doc! { RECORD: "$$ROOT", STORE_NOW: "$$NOW" }
}

/// A record that was understood, and the document that says it.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) record: Record,
    /// As the server has it.
    pub(crate) document: Document,
}

impl Shown {
    /// What an answer shows that carries a [`whole`] record.
    ///
    /// # Errors
    /// Of [`decode`].
    pub(crate) fn read(answer: Document, collection: &str) -> Result<Self, StoreError> {
        let mut document = of_whole(answer);
        let record = decode(&document, collection)?;
        document.remove(STORE_NOW);
        Ok(Self { record, document })
    }

    /// Whether others have put no field of their own into it, nor a longer note than any of ours.
    pub(crate) fn is_ours_alone(&self) -> bool {
        let note = self.document.get_str("note");
        note.is_ok_and(|note| note == self.record.lease.note.as_str())
            && self.document.iter().all(|(key, value)| {
                let parts = match value {
                    Bson::Document(part) => part.keys().all(|key| PARTS.contains(&key.as_str())),
                    _ => true,
                };
                parts && (key == "_id" || key == "purgeAt" || FIELDS.contains(&key.as_str()))
            })
    }
}

/// The record of such an answer, with the clock in it. One that was replayed is the record alone, without a
/// clock.
fn of_whole(mut answer: Document) -> Document {
    let now = answer.remove(STORE_NOW);
    let Some(Bson::Document(mut record)) = answer.remove(RECORD) else {
        return answer;
    };
    record.remove(STORE_NOW);
    if let Some(now) = now {
        record.insert(STORE_NOW, now);
    }
    record
}

/// The fields of a record beside its name and when it is cleaned up, which nobody needs to read.
const FIELDS: [&str; 15] = [
    "owner",
    "incarnation",
    "generation",
    "attempt",
    "terms",
    "ttlMs",
    "createdAt",
    "acquiredAt",
    "lastRenewedAt",
    "expiresAt",
    "released",
    "stepDownAsked",
    "note",
    "previous",
    "renewal",
];

/// The fields within `released`, `stepDownAsked` and `previous`.
const PARTS: [&str; 4] = ["generation", "at", "owner", "end"];

/// What the answers about many carry: the fields of the records, and the server's clock of the same command.
pub(crate) fn projection() -> Document {
    let mut fields: Document = FIELDS
        .iter()
        .map(|field| ((*field).to_owned(), 1.into()))
        .collect();
    fields.insert(STORE_NOW, "$$NOW");
    fields
}
