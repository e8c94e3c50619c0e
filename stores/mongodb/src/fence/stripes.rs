//! What makes a claim and an open transaction of an older term conflict, and two of the same term not.
//!
//! The server detects conflicts of writes only. So a transaction that enters writes one of a resource's
//! stripes, and a claim writes all of them: the claim waits for whoever has entered, and whoever enters later
//! with an older snapshot conflicts. Transactions of one term take the stripes in turn, so they meet only
//! where more of them overlap than there are stripes; then one of them is repeated.
//!
//! A stripe that names no lease is *closed*: nobody enters by it. A claim raises all stripes closed, and
//! opens them for its term only then, so that a claim which fails at one of them lets its term enter by none.

use super::subject;
use mongodb::bson::{Document, bson, doc};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use tenure_core::{Fault, FencingToken, ResourceName, StoreError, Term};

/// Stripes of one resource. Part of the layout: a mark with another number is refused.
pub(super) const STRIPES: i32 = 32;

/// Deals stripes out in turn, from a random one on: two processes do not walk in step.
#[derive(Debug)]
pub(super) struct Turn(AtomicU32);

impl Turn {
    pub(super) fn new() -> Self {
        let bits = RandomState::new().build_hasher().finish();
        Self(AtomicU32::new(u32::try_from(bits >> 40).unwrap_or(0)))
    }

    pub(super) fn next(&self) -> i32 {
        let turn = self.0.fetch_add(1, Ordering::Relaxed) % STRIPES.unsigned_abs();
        i32::try_from(turn).expect("a small number")
    }
}

/// Finds the stripe, if this term may enter by it.
pub(super) fn one_claimed(resource: &ResourceName, stripe: i32, term: &Term) -> Document {
    doc! { "_id": id(resource, stripe), "lease": term.lease.as_str(), "token": term.token.signed() }
}

/// Finds all stripes by which this term may enter.
pub(super) fn claimed(resource: &ResourceName, term: &Term) -> Document {
    let mut claimed = all(resource);
    claimed.extend(doc! { "lease": term.lease.as_str(), "token": term.token.signed() });
    claimed
}

/// What entering changes.
pub(super) fn entered() -> Vec<Document> {
    vec![doc! { "$set": { "entries": { "$add": ["$entries", 1_i64] }, "enteredAt": "$$NOW" } }]
}

/// Finds all stripes of a resource.
pub(super) fn all(resource: &ResourceName) -> Document {
    let ids: Vec<Document> = (0..STRIPES).map(|stripe| id(resource, stripe)).collect();
    doc! { "_id": { "$in": ids } }
}

/// The statements that raise every stripe to `token`, closed, or leave it where it is not lower. A stripe
/// that is left as it is costs no write, and waits for nobody.
pub(super) fn raise(resource: &ResourceName, token: FencingToken) -> Vec<Document> {
    let lower = bson!({ "$or": [
        { "$eq": [{ "$type": "$token" }, "missing"] },
        { "$lt": ["$token", token.signed()] },
    ] });
    let changes = doc! {
        "lease": null,
        "token": token.signed(),
        "entries": { "$ifNull": ["$entries", 0_i64] },
        "enteredAt": { "$ifNull": ["$enteredAt", null] },
    };
    let pipeline = crate::pipeline::merge_if(lower, changes);
    let statement =
        |stripe| doc! { "q": { "_id": id(resource, stripe) }, "u": pipeline.clone(), "upsert": true };
    (0..STRIPES).map(statement).collect()
}

/// The statement that lets `term` enter by every stripe that is at its token. Those that it opens nobody has
/// entered.
pub(super) fn open(resource: &ResourceName, term: &Term) -> Document {
    let lease = term.lease.as_str();
    let mut raised = all(resource);
    raised.insert("token", term.token.signed());
    // One of another lease was left behind by a mark that was removed, and transactions may have entered by
    // it.
    raised.insert("lease", doc! { "$in": [null, lease] });
    doc! { "q": raised, "u": { "$set": { "lease": lease } }, "multi": true }
}

/// Reads the token of a stripe strictly: a plain number that was typed by hand is none.
///
/// # Errors
/// [`Fault::Unreadable`], not applied.
pub(super) fn token(
    stripe: &Document,
    resource: &ResourceName,
    namespace: &str,
) -> Result<FencingToken, StoreError> {
    let token = stripe.get_i64("token").ok();
    token
        .and_then(|token| FencingToken::from_signed(token).ok())
        .ok_or_else(|| {
            let number = stripe.get_document("_id").and_then(|id| id.get_i32("stripe"));
            StoreError::not_applied(
                Fault::Unreadable,
                format!(
                    "{} in {namespace}: field \"token\" of its stripe {} is missing or no token; it was left as it is; mend \
                     it, or remove the stripe, which the next claim makes anew",
                    subject(resource),
                    number.unwrap_or(-1),
                ),
            )
        })
}

fn id(resource: &ResourceName, stripe: i32) -> Document {
    doc! { "resource": resource.as_str(), "stripe": stripe }
}
