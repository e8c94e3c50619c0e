//! A fence per document: no transaction, no further round trip.

mod bulk;
mod condition;

pub use bulk::{BulkResult, FencedUpdate};

use super::{EnterError, MongoFence};
use condition::Condition;
use mongodb::Collection;
use mongodb::bson::{Document, doc, serialize_to_document};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::{
    FindOneOptions, ReadConcern, ReadPreference, ReturnDocument, SelectionCriteria, UpdateModifications,
    WriteModel,
};
use mongodb::results::{DeleteResult, UpdateResult};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt;
use tenure_core::{Fence, FenceError, FencingToken, ResourceName, Term};

/// The field of the token, unless another is named.
const FIELD: &str = "fence";

/// A collection whose documents each carry the token of their last writer in a field, for one term.
///
/// A write of the term changes only documents whose field is not above its token, and sets the field to it:
/// both in the one step that the server takes for a document.
///
/// ```no_run
/// use mongodb::bson::{Document, doc};
/// use tenure_core::{Leases, ResourceName, Term};
/// use tenure_mongodb::MongoFence;
///
/// async fn settle(client: &mongodb::Client, term: Term) -> Result<(), Box<dyn std::error::Error>> {
///     let bank = client.database("bank");
///     let accounts = bank.collection::<Document>("accounts");
///     // Claims the resource for the term: it must be over with before the term reads.
///     let fence = MongoFence::new(&bank, Leases::Here);
///     let accounts = fence.documents(&ResourceName::new("accounts")?, &term, &accounts).await?;
///     // Reads one document and claims it: no earlier term changes it from here on.
///     let Some(account) = accounts.claim_one(doc! { "_id": 1 }).await? else { return Ok(()) };
///     let cents = account.get_i64("cents")? - 5;
///     accounts.update_one(doc! { "_id": 1 }, doc! { "$set": { "cents": cents } }).await?;
///     Ok(())
/// }
/// ```
///
/// # Guarantee
/// - No write of an earlier term changes a document that a later term has written or claimed. It is refused
///   as [`FenceError::Stale`] where it has matched nothing for that reason.
/// - No update is lost, if a term changes what it has read only where it read by
///   [`claim_one`](Self::claim_one) or after [`claim_many`](Self::claim_many), from the primary.
///
/// # What it does not promise
/// - **Documents that no later term has touched** are still open to an earlier one, also after the later term
///   has claimed the resource, or an operator has raised its mark: claim them, or use transactions
///   ([`MongoFence::enter`]).
/// - A document that does not exist carries no token: an earlier term may insert one, and a deletion forgets
///   it. Keep a document and mark it as deleted, or use transactions.
/// - A write of many documents that has changed some tells nothing of those that a later term has written:
///   ask [`newer`](Self::newer).
/// - A document whose field is neither a number nor null is matched by nothing.
///
/// Write and read concern are those of the collection that was given; with less than `w: "majority"`, a
/// fail-over may take a claim back with the write that made it. Indexes need not know the field.
#[derive(Clone)]
pub struct FencedCollection<T: Send + Sync> {
    collection: Collection<T>,
    fence: MongoFence,
    resource: ResourceName,
    term: Term,
    condition: Condition,
}

impl<T: Send + Sync> fmt::Debug for FencedCollection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedCollection")
            .field("place", &self.collection.namespace())
            .field("resource", &self.resource)
            .field("term", &self.term)
            .finish_non_exhaustive()
    }
}

impl MongoFence {
    /// Claims `resource` for `term`, and fences the documents of `collection` for it, by their field `fence`.
    ///
    /// # Errors
    /// As [`claim`](Fence::claim).
    pub async fn documents<T: Send + Sync>(
        &self,
        resource: &ResourceName,
        term: &Term,
        collection: &Collection<T>,
    ) -> Result<FencedCollection<T>, FenceError> {
        self.claim(resource, term).await?;
        Ok(FencedCollection {
            collection: collection.clone(),
            fence: self.clone(),
            resource: resource.clone(),
            term: term.clone(),
            condition: Condition::new(FIELD, term.token),
        })
    }
}

impl<T: Send + Sync> FencedCollection<T> {
    /// Names the field of the token. Default: `fence`. All writers must agree on it.
    ///
    /// # Errors
    /// [`EnterError::Refused`] with [`Fault::Invalid`](tenure_core::Fault::Invalid): it is no field at the
    /// top of a document, or is `_id`.
    pub fn field(mut self, field: &str) -> Result<Self, EnterError> {
        condition::require_field(field)?;
        self.condition = Condition::new(field, self.term.token);
        Ok(self)
    }

    /// `filter`, narrowed to documents that this term may write: for calls of your own, in which the update
    /// must be [`fenced`](Self::update), too.
    #[must_use]
    pub fn filter(&self, filter: Document) -> Document {
        self.condition.narrow(filter)
    }

    /// `update`, which sets the field to the token besides.
    ///
    /// # Errors
    /// [`EnterError::Refused`] with [`Fault::Invalid`](tenure_core::Fault::Invalid): it changes the field
    /// itself, or is no update.
    pub fn update(&self, update: impl Into<UpdateModifications>) -> Result<UpdateModifications, EnterError> {
        self.condition.stamp(update.into())
    }

    /// The same for a statement of the driver's `Client::bulk_write`, which MongoDB 8.0 and later understand.
    /// How many it has matched must be looked at; [`newer`](Self::newer) tells stale from absent. Elsewhere:
    /// [`update_bulk`](Self::update_bulk).
    ///
    /// # Errors
    /// As [`update`](Self::update). An insertion carries no condition; it only gets the field.
    pub fn write_model(&self, model: WriteModel) -> Result<WriteModel, EnterError> {
        self.condition.model(model)
    }

    /// Changes one document.
    ///
    /// # Errors
    /// [`EnterError::Refused`] with [`FenceError::Stale`] if a later term has written what `filter` finds;
    /// nothing was changed. [`EnterError::Driver`].
    ///
    /// # Cost
    /// One round trip, as without the fence; two where nothing was matched.
    pub async fn update_one(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> Result<UpdateResult, EnterError> {
        let update = self.update(update)?;
        let updated = self
            .collection
            .update_one(self.filter(filter.clone()), update)
            .await?;
        self.unless_newer(updated.matched_count, filter).await?;
        Ok(updated)
    }

    /// Changes one document, or makes it. `filter` must name the `_id`: only then can there be no second
    /// document beside one that a later term has written.
    ///
    /// # Errors
    /// [`EnterError::Refused`] with [`FenceError::Stale`] if a later term has written the document of that
    /// `_id`, also where the rest of `filter` does not find it; nothing was changed. With
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid): without an `_id`, or where the document is there and
    /// the rest of `filter` does not find it. [`EnterError::Driver`].
    pub async fn upsert_one(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> Result<UpdateResult, EnterError> {
        let by_id = condition::by_id(&filter)?;
        let update = self.update(update)?;
        let mut race = 1;
        loop {
            let upsert = self
                .collection
                .update_one(self.filter(filter.clone()), update.clone())
                .upsert(true);
            let error = match upsert.await {
                Err(error) if is_duplicate_key(&error) => error,
                answer => return Ok(answer?),
            };
            // A later term has written it; or somebody has just made it, and the next turn finds it.
            self.unless_newer(0, by_id.clone()).await?;
            if race == UPSERTS_MAX {
                return Err(self.made_twice(error));
            }
            race += 1;
        }
    }

    /// Why an upsert would have made a second document, and no later term has written the first.
    fn made_twice(&self, error: Error) -> EnterError {
        if !crate::fault::is_duplicate_key(&error) {
            // By a unique index of the user's.
            return EnterError::Driver(error);
        }
        condition::invalid(format!(
            "fence \"{}\": there is a document of this _id, and the rest of the filter does not find it, or its field \"{}\" is \
             neither a number nor null; nothing was changed",
            self.resource,
            self.condition.field(),
        ))
    }

    /// Changes every document that `filter` finds and no later term has written.
    ///
    /// # Errors
    /// As [`update_one`](Self::update_one), where nothing was matched.
    pub async fn update_many(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> Result<UpdateResult, EnterError> {
        let update = self.update(update)?;
        let updated = self
            .collection
            .update_many(self.filter(filter.clone()), update)
            .await?;
        self.unless_newer(updated.matched_count, filter).await?;
        Ok(updated)
    }

    /// Sets the field of every document that `filter` finds to this term's token: what earlier terms still
    /// write to them is refused from here on. Before they are read: from the primary, as a secondary may not
    /// show the last writes of earlier terms.
    ///
    /// # Errors
    /// As [`update_many`](Self::update_many).
    pub async fn claim_many(&self, filter: Document) -> Result<UpdateResult, EnterError> {
        self.update_many(filter, doc! { "$set": {} }).await
    }

    /// Deletes one document. With it, its token is forgotten.
    ///
    /// # Errors
    /// As [`update_one`](Self::update_one).
    pub async fn delete_one(&self, filter: Document) -> Result<DeleteResult, EnterError> {
        let deleted = self.collection.delete_one(self.filter(filter.clone())).await?;
        self.unless_newer(deleted.deleted_count, filter).await?;
        Ok(deleted)
    }

    /// Deletes every document that `filter` finds and no later term has written.
    ///
    /// # Errors
    /// As [`update_one`](Self::update_one), where nothing was deleted.
    pub async fn delete_many(&self, filter: Document) -> Result<DeleteResult, EnterError> {
        let deleted = self.collection.delete_many(self.filter(filter.clone())).await?;
        self.unless_newer(deleted.deleted_count, filter).await?;
        Ok(deleted)
    }

    /// The highest token above this term's among the documents that `filter` finds; `None` if no later term
    /// has written one.
    ///
    /// # Errors
    /// The driver's.
    pub async fn newer(&self, filter: Document) -> Result<Option<FencingToken>, EnterError> {
        self.newest(filter, FindOneOptions::default()).await
    }

    async fn newest(
        &self,
        filter: Document,
        options: FindOneOptions,
    ) -> Result<Option<FencingToken>, EnterError> {
        // From the primary, and not of a majority: it must see what has just kept the filter from matching.
        let newest = self
            .collection
            .clone_with_type::<Document>()
            .find_one(self.condition.newer(filter))
            .with_options(options)
            .sort(doc! { self.condition.field(): -1 })
            .projection(doc! { self.condition.field(): 1 })
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .read_concern(ReadConcern::local())
            .await?;
        Ok(newest.and_then(|newest| self.condition.token(&newest)))
    }

    async fn unless_newer(&self, matched: u64, filter: Document) -> Result<(), EnterError> {
        match matched {
            0 => self.unless(self.newer(filter).await?),
            _ => Ok(()),
        }
    }

    /// Refuses where a later term was found.
    fn unless(&self, newer: Option<FencingToken>) -> Result<(), EnterError> {
        let Some(mark) = newer else {
            return Ok(());
        };
        let stale = FenceError::Stale {
            resource: self.resource.clone(),
            token: self.term.token,
            mark,
        };
        self.fence.noter.count_here(&stale);
        Err(stale.into())
    }
}

impl<T: Send + Sync + Serialize> FencedCollection<T> {
    /// Replaces one document; the field is added to it.
    ///
    /// # Errors
    /// As [`update_one`](Self::update_one); [`Fault::Invalid`](tenure_core::Fault::Invalid) if it cannot be
    /// made a document.
    pub async fn replace_one(&self, filter: Document, replacement: &T) -> Result<UpdateResult, EnterError> {
        let replacement =
            serialize_to_document(replacement).map_err(|error| condition::invalid(error.to_string()))?;
        let replaced = self
            .collection
            .clone_with_type::<Document>()
            .replace_one(self.filter(filter.clone()), self.condition.stamped(replacement))
            .await?;
        self.unless_newer(replaced.matched_count, filter).await?;
        Ok(replaced)
    }
}

impl<T: Send + Sync + DeserializeOwned> FencedCollection<T> {
    /// Reads one document and claims it: no earlier term changes it from here on. `None` if there is none.
    ///
    /// # Errors
    /// As [`update_one`](Self::update_one).
    pub async fn claim_one(&self, filter: Document) -> Result<Option<T>, EnterError> {
        self.find_one_and_update(filter, doc! { "$set": {} }, ReturnDocument::After)
            .await
    }

    /// Changes one document, and answers with it as it was before or is after; `None` if there is none.
    ///
    /// # Errors
    /// As [`update_one`](Self::update_one).
    pub async fn find_one_and_update(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
        answer: ReturnDocument,
    ) -> Result<Option<T>, EnterError> {
        let update = self.update(update)?;
        let found = self
            .collection
            .find_one_and_update(self.filter(filter.clone()), update)
            .return_document(answer)
            .await?;
        self.unless_newer(u64::from(found.is_some()), filter).await?;
        Ok(found)
    }

    /// Deletes one document, and answers with it as it was; `None` if there is none.
    ///
    /// # Errors
    /// As [`update_one`](Self::update_one).
    pub async fn find_one_and_delete(&self, filter: Document) -> Result<Option<T>, EnterError> {
        let found = self
            .collection
            .find_one_and_delete(self.filter(filter.clone()))
            .await?;
        self.unless_newer(u64::from(found.is_some()), filter).await?;
        Ok(found)
    }
}

/// How often one upsert is sent: a lost race with an insertion finds the document at the next turn.
const UPSERTS_MAX: u32 = 3;

fn is_duplicate_key(error: &Error) -> bool {
    matches!(
        &*error.kind,
        ErrorKind::Write(WriteFailure::WriteError(refused)) if refused.code == crate::fault::DUPLICATE_KEY
    )
}
