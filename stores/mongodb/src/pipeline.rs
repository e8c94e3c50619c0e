//! Expressions that the pipelines share. They judge time by `$$NOW` alone, the server's clock of the command.

use crate::record::{is_record, lasts_no_longer};
use mongodb::bson::{Bson, DateTime, Document, bson, doc};
use std::time::Duration;
use tenure_core::{Attempt, FencingToken, Incarnation, Ttl};

/// A text as itself, whatever it looks like: without this, a text that begins with `$` is a field's path.
pub(crate) fn literal(text: &str) -> Bson {
    bson!({ "$literal": text })
}

/// A ttl as the records keep it.
pub(crate) fn ttl_ms(ttl: Ttl) -> i64 {
    i64::try_from(ttl.as_millis()).expect("a ttl is at most 24 h")
}

/// An attempt as the records keep it.
pub(crate) fn attempt_number(attempt: Attempt) -> i64 {
    i64::try_from(attempt.number()).expect("an attempt is at most 2^63 - 1")
}

/// The expiry of a lease that is extended now. `$$NOW` is a whole number of milliseconds, the last one that
/// had begun: with one more, no lease ends before its time.
pub(crate) fn expiry(ttl: Ttl) -> Bson {
    bson!({ "$add": ["$$NOW", ttl_ms(ttl) + 1] })
}

/// What extends a term that is held.
///
/// `$$NOW` is when the server began with the command. Where somebody keeps a record locked, the command may
/// reach this one or another of its batch after a later renewal, and must not take back what that one has
/// confirmed. So the end comes nearer only where a shorter ttl asks for it, or where it is further off than
/// any lease's: the clock was set back.
pub(crate) fn extension(ttl: Ttl, purge_after: Option<Duration>) -> Document {
    let shortens_nothing = bson!({ "$and": [{ "$lte": ["$ttlMs", ttl_ms(ttl)] }, lasts_no_longer()] });
    let later = bson!({ "$max": ["$expiresAt", expiry(ttl)] });
    doc! {
        "expiresAt": { "$cond": [shortens_nothing, later, expiry(ttl)] },
        "ttlMs": ttl_ms(ttl),
        // Null in a new term; the largest of several passes over it.
        "lastRenewedAt": { "$max": ["$lastRenewedAt", "$$NOW"] },
        "purgeAt": purge_at(purge_after, ttl),
    }
}

/// Not given back.
pub(crate) fn unreleased() -> Bson {
    bson!({ "$eq": ["$released", null] })
}

/// Its time is over, by the server's clock. A lease with no time left is expired.
pub(crate) fn expired() -> Bson {
    bson!({ "$lte": ["$expiresAt", "$$NOW"] })
}

/// Somebody holds it now.
pub(crate) fn held() -> Bson {
    bson!({ "$and": [unreleased(), { "$gt": ["$expiresAt", "$$NOW"] }] })
}

/// The record is of this very term.
pub(crate) fn is_term(incarnation: Incarnation, token: FencingToken, attempt: Attempt) -> Bson {
    bson!({ "$and": [
        { "$eq": ["$incarnation", incarnation.to_string()] },
        { "$eq": ["$generation", token.signed()] },
        { "$eq": ["$attempt", attempt_number(attempt)] },
    ] })
}

/// The stage that leaves the record as it is unless `condition` holds, and merges `changes` into it if so.
pub(crate) fn change_if(condition: Bson, changes: Document) -> Vec<Document> {
    let condition = bson!({ "$and": [condition, is_record()] });
    merge_if(condition, changes)
}

/// The same for what is known to be a record, or is none at all.
pub(crate) fn merge_if(condition: Bson, changes: Document) -> Vec<Document> {
    vec![
        doc! { "$replaceWith": { "$cond": [condition, { "$mergeObjects": ["$$ROOT", changes] }, "$$ROOT"] } },
    ]
}

/// When the record may be cleaned up: long after its last activity, and never while its generation is
/// ahead of the clock that the next token starts from. Without purging, `null`: a date that another set-up
/// left behind must not remove a lease that is in use.
pub(crate) fn purge_at(purge_after: Option<Duration>, ttl: Ttl) -> Bson {
    let Some(purge_after) = purge_after else {
        return Bson::Null;
    };
    dated(wait_ms(purge_after, ttl).into())
}

fn wait_ms(purge_after: Duration, ttl: Ttl) -> i64 {
    bounded_ms(purge_after.max(ttl.duration() * TTLS_BEFORE_PURGE))
}

/// The same for a record whose generation is known.
pub(crate) fn purge_at_of(generation: i64, purge_after: Option<Duration>, ttl: Ttl) -> Bson {
    match purge_after {
        Some(purge_after) if generation < DATED_GENERATION_MAX => {
            let latest = bson!({ "$max": ["$$NOW", DateTime::from_millis(generation)] });
            bson!({ "$add": [latest, wait_ms(purge_after, ttl)] })
        }
        _ => Bson::Null,
    }
}

/// The same by the record's own ttl.
pub(crate) fn purge_at_by_record(purge_after: Option<Duration>) -> Bson {
    let Some(purge_after) = purge_after else {
        return Bson::Null;
    };
    let ttls = bson!({ "$multiply": ["$ttlMs", i64::from(TTLS_BEFORE_PURGE)] });
    dated(bson!({ "$max": [bounded_ms(purge_after), ttls] }))
}

fn bounded_ms(wait: Duration) -> i64 {
    i64::try_from(wait.as_millis())
        .unwrap_or(PURGE_WAIT_MAX_MS)
        .min(PURGE_WAIT_MAX_MS)
}

/// So long after now, and after what the generation says as a date.
fn dated(wait_ms: Bson) -> Bson {
    bson!({ "$cond": [
        { "$lt": [{ "$ifNull": ["$generation", 0_i64] }, DATED_GENERATION_MAX] },
        { "$add": [{ "$max": ["$$NOW", { "$toDate": { "$ifNull": ["$generation", 0_i64] } }] }, wait_ms] },
        null,
    ] })
}

/// A record lives at least this many ttls beyond its last activity.
const TTLS_BEFORE_PURGE: u32 = 10;

/// Longest wait before clean-up: a thousand years.
const PURGE_WAIT_MAX_MS: i64 = 1000 * 366 * 24 * 60 * 60 * 1000;

/// Generations from here on (the year 5138) are no clock's: such a record is never cleaned up.
const DATED_GENERATION_MAX: i64 = 100_000_000_000_000;
