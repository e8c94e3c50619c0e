//! Many writes in one round trip, on every server version.

use super::{FencedCollection, condition};
use crate::fault::{Deed, is_key_of_id, line, reported};
use crate::fence::{EnterError, REQUEST_TIME_MAX};
use mongodb::bson::{Bson, Document, doc, serialize_to_document};
use mongodb::options::{FindOneOptions, ReadConcern, ReadPreference, SelectionCriteria, UpdateModifications};
use std::collections::BTreeMap;
use tenure_core::{Certainty, Fault, FenceError, FencingToken, StoreError};

/// Most statements in one call: a tenth of what one `update` command takes, as long as they fit in it.
const STATEMENTS_MAX: usize = 10_000;

/// Most statements whose documents are looked for by one request.
const LOOKS_AT_ONCE: usize = 100;

/// One statement of a bulk.
#[derive(Clone, Debug)]
pub struct FencedUpdate {
    filter: Document,
    update: UpdateModifications,
    multi: bool,
    upsert: bool,
}

/// What a bulk has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BulkResult {
    /// Documents that were matched or made.
    pub matched: u64,
    /// Documents that were changed.
    pub modified: u64,
    /// Documents that were made.
    pub upserted: u64,
}

impl FencedUpdate {
    /// Changes one document.
    pub fn one(filter: Document, update: impl Into<UpdateModifications>) -> Self {
        Self {
            filter,
            update: update.into(),
            multi: false,
            upsert: false,
        }
    }

    /// Changes every document that `filter` finds.
    pub fn many(filter: Document, update: impl Into<UpdateModifications>) -> Self {
        Self {
            multi: true,
            ..Self::one(filter, update)
        }
    }

    /// Changes one document, or makes it; `filter` must name the `_id`.
    pub fn upsert(filter: Document, update: impl Into<UpdateModifications>) -> Self {
        Self {
            upsert: true,
            ..Self::one(filter, update)
        }
    }
}

impl<T: Send + Sync> FencedCollection<T> {
    /// Runs the statements in any order, in one round trip, each on its own: one that is refused stops no
    /// other.
    ///
    /// # Errors
    /// [`EnterError::Refused`] with [`FenceError::Stale`] if a later term has written a document of a
    /// statement; **the other statements were carried out**. With [`FenceError::Store`]: statements failed,
    /// or were not confirmed, which is told in the server's words, and others may have been carried out, or
    /// have found what a later term has written; or, and nothing was sent, [`Fault::Invalid`] for none or
    /// more than 10,000 statements, an upsert without `_id`, an update that changes the field itself.
    /// [`EnterError::Driver`]; also for more than the 16 MiB that the server takes in one command, 1.6 KiB
    /// for each of 10,000.
    ///
    /// # Cost
    /// One round trip; where fewer documents were matched than there are statements, one more for each
    /// hundred of them, one after the other and each of 5 s at most, and another one where an upsert was
    /// among those. (Where a statement of [`FencedUpdate::many`] makes up the number, ask
    /// [`newer`](Self::newer).)
    pub async fn update_bulk(&self, updates: Vec<FencedUpdate>) -> Result<BulkResult, EnterError> {
        let count = updates.len();
        if !(1..=STATEMENTS_MAX).contains(&count) {
            let message = format!("a bulk of {count} statements; give 1 to {STATEMENTS_MAX}");
            return Err(condition::invalid(message));
        }
        let mut statements = Vec::with_capacity(count);
        let mut sent = Vec::with_capacity(count);
        for update in updates {
            sent.push(Sent::of(&update)?);
            let mut statement =
                doc! { "q": self.filter(update.filter), "multi": update.multi, "upsert": update.upsert };
            match self.update(update.update)? {
                UpdateModifications::Pipeline(stages) => statement.insert("u", stages),
                UpdateModifications::Document(update) => statement.insert("u", update),
                _ => {
                    return Err(condition::invalid("this kind of update is unknown"));
                }
            };
            statements.push(statement);
        }
        let mut command = doc! { "update": self.collection.name(), "ordered": false };
        if let Some(concern) = self.collection.write_concern() {
            let concern =
                serialize_to_document(concern).map_err(|error| condition::invalid(error.to_string()))?;
            command.insert("writeConcern", concern);
        }
        command.insert("updates", statements);
        let database = self.collection.client().database(&self.collection.namespace().db);
        let answer = database.run_command(command).await?;
        self.bulk_result(&answer, sent).await
    }

    async fn bulk_result(&self, answer: &Document, sent: Vec<Sent>) -> Result<BulkResult, EnterError> {
        let number = |field| {
            let number = answer
                .get_i32(field)
                .map(i64::from)
                .or_else(|_| answer.get_i64(field));
            number
                .ok()
                .and_then(|number| u64::try_from(number).ok())
                .unwrap_or(0)
        };
        let upserted = answer.get_array("upserted").map_or(0, |made| made.len() as u64);
        let result = BulkResult {
            matched: number("n"),
            modified: number("nModified"),
            upserted,
        };
        let failed = self.failure(answer, &sent).await;
        let stale = match result.matched < sent.len() as u64 {
            true => {
                let newer = self.newest_of_any(&sent).await;
                newer.and_then(|newer| self.unless(newer))
            }
            false => Ok(()),
        };
        // First: who is told of a later term alone takes all else for done.
        match failed {
            Some(error) => Err(EnterError::Refused(FenceError::Store(error))),
            None => stale.map(|()| result),
        }
    }

    /// The highest token above this term's among what the statements were to write.
    ///
    /// In parts: the server plans each branch of an `$or` with every index that might serve it, and of
    /// thousands that takes it many times as long as the bulk.
    async fn newest_of_any(&self, sent: &[Sent]) -> Result<Option<FencingToken>, EnterError> {
        let mut newest = None;
        for part in sent.chunks(LOOKS_AT_ONCE) {
            let looks: Vec<Document> = part.iter().map(|sent| sent.look.clone()).collect();
            // Whoever gives the call up leaves no more behind than one part, and that not for long.
            let bounded = FindOneOptions::builder().max_time(REQUEST_TIME_MAX).build();
            newest = newest.max(self.newest(doc! { "$or": looks }, bounded).await?);
        }
        Ok(newest)
    }

    /// What was not carried out, or not confirmed, but for what ran into documents of a later term.
    async fn failure(&self, answer: &Document, sent: &[Sent]) -> Option<StoreError> {
        let name = format!("fence \"{}\"", self.resource);
        let place = self.collection.namespace().to_string();
        let failures = answer.get_array("writeErrors").ok().into_iter().flatten();
        let failures: Vec<&Document> = failures.filter_map(Bson::as_document).collect();
        if let Some(first) = failures.first()
            && !self.are_of_a_later_term(&failures, sent).await
        {
            // In the server's words: these are the user's statements, and what they ran into is the user's,
            // too.
            let why = format!(
                "of {} statements {} failed; the first, number {} counted from 0: {} (code {})",
                sent.len(),
                failures.len(),
                index(first),
                line(first.get_str("errmsg").unwrap_or("no message")),
                first.get_i32("code").unwrap_or(0),
            );
            return Some(Deed::Write.error(Fault::Internal, Certainty::Unknown, &name, &place, why));
        }
        let unconfirmed = answer.get_document("writeConcernError").ok()?;
        Some(reported(unconfirmed, Certainty::Unknown, &name, &place))
    }

    /// Whether all of these failed because a later term has written the document: an upsert that does not
    /// find it for that reason would make another one of its `_id`.
    async fn are_of_a_later_term(&self, failures: &[&Document], sent: &[Sent]) -> bool {
        let mut ids = BTreeMap::new();
        for failure in failures {
            let (code, message) = (failure.get_i32("code"), failure.get_str("errmsg"));
            let is_key = is_key_of_id(code.unwrap_or(0), message.unwrap_or_default());
            let Some(upsert) = sent.get(index(failure)).filter(|sent| is_key && sent.upsert) else {
                return false;
            };
            let Ok(bytes) = upsert.look.to_vec() else {
                return false;
            };
            ids.insert(bytes, upsert.look.get("_id").cloned());
        }
        let documents = doc! { "_id": { "$in": ids.values().cloned().collect::<Vec<_>>() } };
        let newer = self
            .collection
            .count_documents(self.condition.newer(documents))
            .max_time(REQUEST_TIME_MAX)
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .read_concern(ReadConcern::local());
        newer.await.is_ok_and(|newer| newer == ids.len() as u64)
    }
}

/// What is kept of a statement until it is answered.
struct Sent {
    /// Finds what it was to write, whoever has written that: of an upsert the document of its `_id`, which no
    /// second may have.
    look: Document,
    upsert: bool,
}

impl Sent {
    fn of(update: &FencedUpdate) -> Result<Self, EnterError> {
        let look = match update.upsert {
            true => condition::by_id(&update.filter)?,
            false => update.filter.clone(),
        };
        Ok(Self {
            look,
            upsert: update.upsert,
        })
    }
}

/// Which of the statements it speaks of.
fn index(failure: &Document) -> usize {
    let index = failure.get_i32("index").ok();
    index
        .and_then(|index| usize::try_from(index).ok())
        .unwrap_or(usize::MAX)
}
