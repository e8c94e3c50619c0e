//! Many writes in one round trip, on every server version.

use super::{FencedCollection, condition};
use crate::fault::reported;
use crate::fence::EnterError;
use mongodb::bson::{Document, doc, serialize_to_document};
use mongodb::options::UpdateModifications;
use tenure_core::{Certainty, FenceError};

/// Most statements in one call: what one `update` command takes with room to spare.
const STATEMENTS_MAX: usize = 10_000;

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
    /// Runs the statements in any order, in one round trip, each on its own: one that is refused stops no other.
    ///
    /// # Errors
    /// [`EnterError::Refused`] with [`FenceError::Stale`] if a later term has written a document of a statement;
    /// **the other statements were carried out**. With [`FenceError::Store`]: the server reports a failed statement,
    /// and others may have been carried out; or, and nothing was sent, [`Fault::Invalid`](tenure_core::Fault::Invalid)
    /// for none or more than 10,000 statements, an upsert without `_id`, an update that changes the field itself.
    /// [`EnterError::Driver`].
    ///
    /// # Cost
    /// One round trip; a second one where fewer documents were matched than there are statements. (Where a statement
    /// of [`FencedUpdate::many`] makes up the number, ask [`newer`](Self::newer).)
    pub async fn update_bulk(&self, updates: Vec<FencedUpdate>) -> Result<BulkResult, EnterError> {
        let count = updates.len();
        if !(1..=STATEMENTS_MAX).contains(&count) {
            let message = format!("a bulk of {count} statements; give 1 to {STATEMENTS_MAX}");
            return Err(condition::invalid(message));
        }
        let mut statements = Vec::with_capacity(count);
        let mut filters = Vec::with_capacity(count);
        for update in updates {
            if update.upsert {
                condition::require_id(&update.filter)?;
            }
            filters.push(update.filter.clone());
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
        self.bulk_result(&answer, filters).await
    }

    async fn bulk_result(&self, answer: &Document, filters: Vec<Document>) -> Result<BulkResult, EnterError> {
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
        if result.matched < filters.len() as u64 {
            self.unless_newer(0, doc! { "$or": filters }).await?;
        }
        let failed = answer
            .get_array("writeErrors")
            .ok()
            .and_then(|errors| errors.first()?.as_document());
        if let Some(failed) = failed.or(answer.get_document("writeConcernError").ok()) {
            let name = format!("fence \"{}\"", self.resource);
            let place = self.collection.namespace().to_string();
            let error = reported(failed, Certainty::Unknown, &name, &place);
            return Err(EnterError::Refused(FenceError::Store(error)));
        }
        Ok(result)
    }
}
