use crate::fault::{DUPLICATE_KEY, Deed, is_duplicate_key};
use crate::pipeline::{
    attempt_number, expired, expiry, extension, held, literal, purge_at, ttl_ms, unreleased,
};
use crate::record::{Record, Shown, is_record, whole};
use crate::short;
use crate::site::{Site, subject};
use mongodb::bson::{Bson, Document, bson, doc};
use mongodb::options::ReturnDocument;
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, Fault, FencingToken, Grant, StoreError, Ttl};

/// How often one acquisition sends its upsert. Two racing upserts of a new name can both try to insert; the
/// loser is told of a duplicate key, and the second time it finds the winner's record. A second refusal
/// means a record that is not ours.
const UPSERTS_MAX: u32 = 2;

/// An acquisition may take this part of its ttl: a little less than who asks for it waits, a tenth. Who looks
/// then what became of it finds what it will ever have done, also where somebody keeps the record locked.
const PARTS_OF_TTL: u32 = 12;

/// An acquisition may take so long whatever the ttl: less would end those of a busy server.
const ACQUISITION_TIME_LEAST: Duration = Duration::from_secs(1);

/// Least bound that a server knows.
const REQUEST_TIME_LEAST: Duration = Duration::from_millis(1);

impl Site {
    /// Decides an acquisition, in one atomic step of the server.
    pub(crate) async fn acquire(&self, request: &Acquire) -> Result<Acquired, StoreError> {
        self.in_time(Deed::Write, &subject(&request.name), self.decide(request))
            .await
    }

    async fn decide(&self, request: &Acquire) -> Result<Acquired, StoreError> {
        let began = Instant::now();
        self.identify().await?;
        if let Some(acquired) = self.take_as_seen(request, began).await? {
            return Ok(acquired);
        }
        for _upsert in 0..UPSERTS_MAX {
            if let Some(shown) = self.upsert(request, began).await? {
                return self.judge(request, shown);
            }
        }
        // Not ours to touch: say why, from the record itself. Only a refusal may come from a read: a grant
        // extends the lease, and this changed nothing.
        if let Some(record) = self.read(&request.name).await?
            && let Ok(refused @ Acquired::Held(_)) = judge(request, &record)
        {
            return Ok(refused);
        }
        Err(StoreError::not_applied(
            Fault::Busy,
            format!(
                "{} at {}: the record came and went under the request (code {DUPLICATE_KEY}); ask again",
                subject(&request.name),
                self.place
            ),
        ))
    }

    /// What is left of an acquisition's time. The server takes no time at all for no bound.
    fn acquisition_time_left(&self, ttl: Ttl, began: Instant) -> Duration {
        let part = ttl.duration() / PARTS_OF_TTL;
        let time_max = self.time_max.min(part.max(ACQUISITION_TIME_LEAST));
        time_max.saturating_sub(began.elapsed()).max(REQUEST_TIME_LEAST)
    }

    /// The short way; `None` if it did not decide.
    async fn take_as_seen(&self, request: &Acquire, began: Instant) -> Result<Option<Acquired>, StoreError> {
        let seen = self.seen.take(&request.name);
        let Some(pipeline) = seen.and_then(|seen| short::take(request, seen, self.purge_after)) else {
            return Ok(None);
        };
        let time_max = self.acquisition_time_left(request.ttl, began);
        let Some(shown) = self.change_as_seen(&request.name, pipeline, time_max).await? else {
            // It was there: before it is made anew, who answers is looked at.
            self.identity.doubt();
            self.is_ours().await?;
            return Ok(None);
        };
        let is_decided =
            short::has_taken(request, &shown.record) || is_held_by_another(request, &shown.record);
        is_decided.then(|| self.judge(request, shown)).transpose()
    }

    /// Reads the decision off what the server shows, and keeps what was granted in mind.
    fn judge(&self, request: &Acquire, shown: Shown) -> Result<Acquired, StoreError> {
        let acquired = judge(request, &shown.record)?;
        if matches!(acquired, Acquired::Granted(_)) {
            self.seen.keep(shown);
        }
        Ok(acquired)
    }

    /// One upsert; `None` if the server refused it for a duplicate key.
    async fn upsert(&self, request: &Acquire, began: Instant) -> Result<Option<Shown>, StoreError> {
        // A document with nothing but the name may be another program's lock: it is not found, and the
        // insertion fails.
        let upsert = self
            .leases
            .find_one_and_update(
                doc! { "_id": request.name.as_str(), "generation": { "$gte": 1_i64 } },
                pipeline(request, self.purge_after),
            )
            .upsert(true)
            .return_document(ReturnDocument::After)
            .projection(whole())
            .max_time(self.acquisition_time_left(request.ttl, began));
        let subject = subject(&request.name);
        match upsert.await {
            Ok(Some(answer)) => Shown::read(answer, &self.namespace).map(Some),
            Ok(None) => Err(StoreError::unknown(
                Fault::Internal,
                format!(
                    "{subject} at {}: the server answered an upsert with nothing",
                    self.place
                ),
            )),
            Err(error) if is_duplicate_key(&error) => Ok(None),
            Err(error) => Err(self.error(&error, Deed::Write, &subject)),
        }
    }
}

/// The whole decision, as one pipeline: a new term, the same term again, or the record as it is.
fn pipeline(request: &Acquire, purge_after: Option<std::time::Duration>) -> Vec<Document> {
    let attempt = attempt_number(request.attempt);
    let mine = bson!({ "$eq": ["$incarnation", request.candidate.incarnation.to_string()] });
    let this_attempt = bson!({ "$eq": ["$attempt", attempt] });
    let earlier_attempt = bson!({ "$lt": ["$attempt", attempt] });
    let free = bson!({ "$or": [{ "$not": [unreleased()] }, expired()] });
    let expired_unreleased = bson!({ "$and": [unreleased(), expired()] });
    // Against my own record only a later attempt counts, except that a term which ran out is over: its
    // attempt may begin another. A released one may not: that would be a late duplicate.
    let take_mine =
        bson!({ "$or": [earlier_attempt, { "$and": [this_attempt.clone(), expired_unreleased] }] });
    let has_successor = bson!({ "$lt": ["$generation", FencingToken::MAX.signed()] });
    let take = bson!({ "$or": [
        is_fresh(),
        { "$and": [has_successor, { "$cond": [mine.clone(), take_mine, free] }] },
    ] });
    let again = bson!({ "$and": [mine, this_attempt, held()] });
    let extended = extension(request.ttl, purge_after);
    let decision = bson!({ "$switch": {
        "branches": [
            { "case": take, "then": { "$mergeObjects": ["$$ROOT", new_term(request, purge_after)] } },
            { "case": again, "then": { "$mergeObjects": ["$$ROOT", extended] } },
        ],
        "default": "$$ROOT",
    } });
    vec![doc! { "$replaceWith": { "$cond": [{ "$or": [is_fresh(), is_record()] }, decision, "$$ROOT"] } }]
}

/// The upsert found nothing: the document has its `_id` alone.
fn is_fresh() -> Bson {
    bson!({ "$eq": [{ "$type": "$generation" }, "missing"] })
}

fn new_term(request: &Acquire, purge_after: Option<std::time::Duration>) -> Document {
    let previous = bson!({ "$cond": [is_fresh(), null, {
        "owner": "$owner",
        "generation": "$generation",
        "end": { "$cond": [{ "$and": [unreleased(), expired()] }, "expired", "released"] },
        // A term that its own holder gave up for a later attempt ends now.
        "at": { "$cond": [unreleased(), { "$min": ["$expiresAt", "$$NOW"] }, "$released.at"] },
    }] });
    // Clipped, since a sum beyond 64 bits would become a float.
    let number =
        |field: &str| bson!({ "$add": [{ "$min": [{ "$ifNull": [field, 0_i64] }, i64::MAX - 1] }, 1_i64] });
    let succession = Succession {
        generation: number("$generation"),
        terms: number("$terms"),
        previous,
        purge_at: purge_at(purge_after, request.ttl),
    };
    term(request, succession)
}

/// What a new term takes from the record before it.
pub(crate) struct Succession {
    /// One more than the last.
    pub(crate) generation: Bson,
    pub(crate) terms: Bson,
    pub(crate) previous: Bson,
    pub(crate) purge_at: Bson,
}

/// The fields of a new term, by whichever way it is taken.
pub(crate) fn term(request: &Acquire, succession: Succession) -> Document {
    doc! {
        "owner": literal(request.candidate.id.as_str()),
        "incarnation": request.candidate.incarnation.to_string(),
        // The clock is a floor: tokens rise even when the record was purged or restored.
        "generation": { "$max": [succession.generation, { "$toLong": "$$NOW" }] },
        "attempt": attempt_number(request.attempt),
        "terms": succession.terms,
        "ttlMs": ttl_ms(request.ttl),
        "createdAt": { "$ifNull": ["$createdAt", "$$NOW"] },
        "acquiredAt": "$$NOW",
        "lastRenewedAt": null,
        "expiresAt": expiry(request.ttl),
        "released": null,
        "stepDownAsked": null,
        "note": literal(request.note.as_str()),
        "previous": succession.previous,
        "renewal": null,
        "purgeAt": succession.purge_at,
    }
}

/// Reads the decision off the record as the server left it.
fn judge(request: &Acquire, record: &Record) -> Result<Acquired, StoreError> {
    let ours = record.lease.holder.incarnation == request.candidate.incarnation;
    let last = record.lease.token == FencingToken::MAX;
    if last && (!record.is_held() || (ours && record.lease.attempt < request.attempt)) {
        return Err(StoreError::not_applied(
            Fault::Internal,
            format!(
                "{}: its tokens are used up at {}; use another name",
                subject(&request.name),
                FencingToken::MAX
            ),
        ));
    }
    if !ours {
        return match record.is_held() {
            true => Ok(Acquired::Held(record.lease.clone())),
            false => Err(undecided(request)),
        };
    }
    if record.lease.attempt > request.attempt
        || (record.lease.attempt == request.attempt && record.lease.released)
    {
        return Ok(Acquired::Superseded);
    }
    if record.lease.attempt < request.attempt || !record.is_held() {
        return Err(undecided(request));
    }
    Ok(Acquired::Granted(Grant {
        token: record.lease.token,
        ttl: record.lease.ttl,
        terms: record.lease.terms,
        again: record.extended,
        predecessor: record.previous.clone(),
    }))
}

fn is_held_by_another(request: &Acquire, record: &Record) -> bool {
    record.lease.holder.incarnation != request.candidate.incarnation && record.is_held()
}

/// The record was free, and still is: the pipeline and this judgement disagree, or the record was read
/// after the decision. Asking again is safe.
fn undecided(request: &Acquire) -> StoreError {
    StoreError::unknown(
        Fault::Internal,
        format!(
            "{}: the server left a free lease as it was; ask again",
            subject(&request.name)
        ),
    )
}
