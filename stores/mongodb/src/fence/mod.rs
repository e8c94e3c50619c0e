//! The fence: a mark per resource, in the user's own database.

mod enter;
mod mark;

pub use enter::EnterError;

use crate::fault::{Deed, is_duplicate_key, store_error, timed_out};
use crate::site::collection;
use mark::Mark;
use mongodb::bson::{Document, bson, doc};
use mongodb::error::Error;
use mongodb::options::{ReadConcern, ReturnDocument};
use mongodb::{Collection, Database};
use std::future::Future;
use std::time::Duration;
use tenure_core::{Answer, Claimed, Fault, Fence, FenceError, FencingToken, ResourceName, StoreError};

/// Collection of the marks, unless another is named.
const COLLECTION: &str = "fences";

/// How long a claim or a look at a mark may take. A claim waits for transactions that have entered the
/// fence and are still open.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// How often one claim sends its upsert; see the acquisition of a lease.
const UPSERTS_MAX: u32 = 2;

/// A fence over a collection: [`claim`](Fence::claim) once per term, [`enter`](Self::enter) in every
/// transaction that writes.
///
/// A mark is `{ _id: resource, token, entries, claimedAt, enteredAt, previous }`. Entering writes it, so a
/// claim and an open transaction of an older term always conflict: whichever commits first, the other fails
/// or waits. (A transaction that only read the mark would not notice a claim that committed meanwhile.) The
/// price: transactions of one resource happen one after the other; give independent data independent
/// resources.
///
/// Needs a replica set or a sharded cluster, as transactions do. A resource is `_id`, so a sharded
/// collection of marks needs `_id` as its shard key. All requests run where they are awaited, on the runtime
/// of the client that `database` belongs to; it must be the same client as the session's.
///
/// ```no_run
/// use mongodb::bson::doc;
/// use tenure_core::{Fence, FencingToken, ResourceName};
/// use tenure_mongodb::MongoFence;
///
/// async fn settle(client: &mongodb::Client, token: FencingToken) -> Result<(), Box<dyn std::error::Error>> {
///     let database = client.database("bank");
///     let (fence, ledger) = (MongoFence::new(&database), ResourceName::new("ledger")?);
///     // Before the first read of what this term will change.
///     fence.claim(&ledger, token).await?;
///
///     let accounts = database.collection::<mongodb::bson::Document>("accounts");
///     let mut session = client.start_session().await?;
///     // Runs the closure again for as long as the conflict is a passing one.
///     let settled = session
///         .start_transaction()
///         .and_run2(async move |session| {
///             fence.enter(session, &ledger, token).await?;
///             accounts.update_one(doc! { "_id": 1 }, doc! { "$inc": { "cents": 5 } }).session(&mut *session).await?;
///             Ok(())
///         })
///         .await;
///     match settled {
///         Err(error) => match MongoFence::refusal(&error) {
///             Some(refused) => Err(format!("this term is over: {refused}").into()),
///             None => Err(error.into()),
///         },
///         Ok(()) => Ok(()),
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct MongoFence {
    marks: Collection<Document>,
    namespace: String,
}

impl MongoFence {
    /// The fence in the collection `fences` of `database`.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self::in_collection(database, COLLECTION)
    }

    /// The fence in a collection of another name.
    #[must_use]
    pub fn in_collection(database: &Database, name: &str) -> Self {
        Self {
            marks: collection(database, name, REQUEST_TIME_MAX),
            namespace: format!("{}.{name}", database.name()),
        }
    }

    async fn within<T>(
        &self,
        deed: Deed,
        resource: &ResourceName,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<Result<T, Error>, FenceError> {
        tokio::time::timeout(REQUEST_TIME_MAX, request)
            .await
            .map_err(|_late| {
                let mut error = timed_out(deed, &subject(resource), &self.namespace, REQUEST_TIME_MAX);
                error.message.push_str(
                    "; an open transaction of an earlier term may hold the mark, for at most 60s by default",
                );
                FenceError::Store(error)
            })
    }

    fn failed(&self, deed: Deed, resource: &ResourceName, error: &Error) -> FenceError {
        FenceError::Store(store_error(error, deed, &subject(resource), &self.namespace))
    }

    async fn raise(&self, resource: &ResourceName, token: FencingToken) -> Result<Claimed, FenceError> {
        for _upsert in 0..UPSERTS_MAX {
            let claim = self
                .marks
                .find_one_and_update(mark::filter(resource), raised(token))
                .upsert(true)
                .return_document(ReturnDocument::Before)
                .max_time(REQUEST_TIME_MAX);
            let before = match self.within(Deed::Write, resource, claim.into_future()).await? {
                Ok(before) => before,
                Err(error) if is_duplicate_key(&error) => continue,
                Err(error) => return Err(self.failed(Deed::Write, resource, &error)),
            };
            let before = before
                .map(|found| Mark::read(&found, &self.namespace))
                .transpose()?;
            return match before.map(|mark| mark.token) {
                Some(mark) if mark > token => Err(FenceError::Stale {
                    resource: resource.clone(),
                    token,
                    mark,
                }),
                Some(mark) if mark == token => Ok(Claimed::Already),
                from => Ok(Claimed::Raised { from }),
            };
        }
        // A document that is no mark, or one that came and went; the former is an error.
        self.look(resource).await?;
        Err(FenceError::Store(StoreError::not_applied(
            Fault::Busy,
            format!(
                "{} at {}: the mark keeps changing; claim again",
                subject(resource),
                self.namespace
            ),
        )))
    }

    async fn look(&self, resource: &ResourceName) -> Result<Option<FencingToken>, FenceError> {
        let look = self
            .marks
            .find_one(doc! { "_id": resource.as_str() })
            .read_concern(ReadConcern::linearizable())
            .max_time(REQUEST_TIME_MAX);
        let found = self
            .within(Deed::Read, resource, look.into_future())
            .await?
            .map_err(|error| self.failed(Deed::Read, resource, &error))?;
        let mark = found
            .map(|found| Mark::read(&found, &self.namespace))
            .transpose()?;
        Ok(mark.map(|mark| mark.token))
    }
}

impl Fence for MongoFence {
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        token: FencingToken,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        Box::pin(self.raise(resource, token))
    }

    fn mark<'a>(
        &'a self,
        resource: &'a ResourceName,
    ) -> Answer<'a, Result<Option<FencingToken>, FenceError>> {
        Box::pin(self.look(resource))
    }
}

/// Raises the mark if it is lower, or makes it; else leaves it as it is.
fn raised(token: FencingToken) -> Vec<Document> {
    let fresh = bson!({ "$eq": [{ "$type": "$token" }, "missing"] });
    let lower = bson!({ "$or": [fresh.clone(), { "$lt": ["$token", token.signed()] }] });
    let changes = doc! {
        "token": token.signed(),
        "entries": { "$ifNull": ["$entries", 0_i64] },
        "claimedAt": "$$NOW",
        "enteredAt": { "$ifNull": ["$enteredAt", null] },
        "previous": { "$cond": [fresh, null, "$token"] },
    };
    crate::pipeline::merge_if(lower, changes)
}

fn subject(resource: &ResourceName) -> String {
    format!("fence \"{resource}\"")
}
