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
pub(crate) use shape::{fits, is_record, name_pattern, nameable, readable, understood};

use mongodb::bson::{Document, doc};

/// The computed field by which the server tells its clock with an answer.
pub(crate) const STORE_NOW: &str = "storeNow";

/// What every answer carries: the whole record, and the server's clock of the same command.
pub(crate) fn projection() -> Document {
    doc! {
        "owner": 1, "incarnation": 1, "generation": 1, "attempt": 1, "terms": 1, "ttlMs": 1,
        "createdAt": 1, "acquiredAt": 1, "lastRenewedAt": 1, "expiresAt": 1, "released": 1,
        "stepDownAsked": 1, "note": 1, "previous": 1, "renewal": 1, STORE_NOW: "$$NOW",
    }
}
