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
pub(crate) use shape::{fits, is_record, readable, understood};

use mongodb::bson::{Bson, Document, doc};

/// The computed field by which the server tells its clock with an answer.
pub(crate) const STORE_NOW: &str = "storeNow";

/// The field of an answer in which the server shows a record as it is.
const RECORD: &str = "record";

/// What the answer about one lease carries: its record, and the server's clock of the same command. A list of its fields would
/// cost the server as much again.
pub(crate) fn whole() -> Document {
    doc! { RECORD: "$$ROOT", STORE_NOW: "$$NOW" }
}

/// The record of such an answer, with the clock in it. One that was replayed is the record alone, without a clock.
pub(crate) fn of_whole(mut answer: Document) -> Document {
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

/// What the answers about many carry: the fields of the records, and the server's clock of the same command.
pub(crate) fn projection() -> Document {
    doc! {
        "owner": 1, "incarnation": 1, "generation": 1, "attempt": 1, "terms": 1, "ttlMs": 1,
        "createdAt": 1, "acquiredAt": 1, "lastRenewedAt": 1, "expiresAt": 1, "released": 1,
        "stepDownAsked": 1, "note": 1, "previous": 1, "renewal": 1, STORE_NOW: "$$NOW",
    }
}
