//! The short way: to take a lease that this store has given back itself, or to give back what it has taken.
//!
//! The common statements check every rule of the record that they find, and decide. That is some 140
//! expressions, which the server reads anew with each request. Here the record is mostly as this store has
//! left it: then all is known of it but the time, and what it becomes is one comparison of the whole away. Of
//! any other record nothing is changed, and the common statement decides.

use crate::acquire::{Succession, term};
use crate::pipeline::{literal, purge_at_of};
use crate::record::{Record, Shown};
use crate::release::end;
use mongodb::bson::{Bson, Document, bson};
use std::time::Duration;
use tenure_core::{Acquire, FencingToken, Release};

/// What takes a lease that is as `seen`; `None` if it is not free then.
pub(crate) fn take(request: &Acquire, seen: Shown, purge_after: Option<Duration>) -> Option<Vec<Document>> {
    let lease = &seen.record.lease;
    let is_mine = lease.holder.incarnation == request.candidate.incarnation;
    // Against a record of my own only a later attempt counts.
    let is_free = match is_mine {
        true => lease.attempt < request.attempt,
        false => lease.released,
    };
    let generation = lease.token.signed();
    let (next, terms) = (
        generation.checked_add(1)?,
        i64::try_from(lease.terms).ok()?.checked_add(1)?,
    );
    if !is_free || lease.token == FencingToken::MAX {
        return None;
    }
    let owner = literal(lease.holder.id.as_str());
    let previous = match seen.document.get_document("released") {
        Ok(released) => {
            bson!({ "owner": owner, "generation": generation, "end": "released", "at": released.get("at") })
        }
        // A term that its own holder gives up ends now, if it has not run out.
        Err(_) => bson!({
            "owner": owner,
            "generation": generation,
            "end": { "$cond": [{ "$lte": ["$expiresAt", "$$NOW"] }, "expired", "released"] },
            "at": { "$min": ["$expiresAt", "$$NOW"] },
        }),
    };
    let succession = Succession {
        generation: next.into(),
        terms: terms.into(),
        previous,
        purge_at: purge_at_of(generation, purge_after, request.ttl),
    };
    Some(change_as_seen(seen, term(request, succession)))
}

/// Whether a record is of the command that has answered with it. No other leaves this attempt so much time as
/// a new term has: a grant counts its ttl from when it was asked for, and one of earlier has less.
pub(crate) fn has_taken(request: &Acquire, record: &Record) -> bool {
    record.lease.holder.incarnation == request.candidate.incarnation
        && record.lease.attempt == request.attempt
        && record.is_held()
        && record.lease.ttl == request.ttl
        && record.lease.remaining >= request.ttl.duration()
}

/// What gives back a term that is as `seen`; `None` if that is another one, or was given back.
pub(crate) fn vacate(request: &Release, seen: Shown, purge_after: Option<Duration>) -> Option<Vec<Document>> {
    let record = &seen.record;
    if record.lease.released || !record.is_term(request.incarnation, request.token, request.attempt) {
        return None;
    }
    let purge_at = purge_at_of(request.token.signed(), purge_after, record.lease.ttl);
    Some(change_as_seen(seen, end(purge_at)))
}

/// Merges `changes` into a record that is as `seen`. A number or a text of another type is equal to the
/// server, and makes it another record to us.
fn change_as_seen(seen: Shown, changes: Document) -> Vec<Document> {
    let mut kinds = Kinds::default();
    kinds.note("$", &seen.document);
    let is_as_seen = bson!({ "$and": [
        { "$eq": ["$$ROOT", { "$literal": seen.document }] },
        { "$eq": [kinds.found, { "$literal": kinds.right }] },
    ] });
    crate::pipeline::merge_if(is_as_seen, changes)
}

/// What the numbers and texts of a record are.
#[derive(Default)]
struct Kinds {
    found: Vec<Bson>,
    right: Vec<&'static str>,
}

impl Kinds {
    fn note(&mut self, path: &str, part: &Document) {
        for (field, value) in part {
            let right = match value {
                Bson::Int64(_) => "long",
                Bson::String(_) => "string",
                Bson::Document(part) => {
                    self.note(&format!("{path}{field}."), part);
                    continue;
                }
                _ => continue,
            };
            self.found.push(bson!({ "$type": format!("{path}{field}") }));
            self.right.push(right);
        }
    }
}
