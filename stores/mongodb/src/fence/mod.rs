//! The fence: a mark per resource, in the user's own database.

mod claim;
mod connect;
mod documents;
mod enter;
mod look;
mod mark;
mod refusals;
mod stripes;

pub use documents::{BulkResult, FencedCollection, FencedUpdate};
pub use enter::EnterError;

use crate::fault::{Deed, Repeats, timed_out};
use crate::site::collection;
use crate::url::COLLECTION as LEASES;
use mark::Found;
use mongodb::bson::Document;
use mongodb::error::Error;
use mongodb::{Collection, Database};
use refusals::Beside;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stripes::Turn;
use tenure_core::{
    Answer, Bump, Claimed, Cursor, Fence, FenceError, Leases, Mark, MarkPage, ResourceName, Term,
};
use tenure_remote::Noter;

/// Collection of the marks, unless another is named.
const COLLECTION: &str = "fences";

/// How long a claim or a look at a mark may take. A claim waits for transactions that have entered the
/// fence and are still open.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// A fence over a collection: [`claim`](Fence::claim) once per term, [`enter`](Self::enter) in every
/// transaction that writes.
///
/// Transactions of one term run side by side; a claim and an open transaction of an older term always
/// conflict: whichever commits first, the other fails or waits. (A transaction that only read the mark would
/// not notice a claim that committed meanwhile.) Entering costs one round trip. How: a transaction writes one
/// of a resource's 32 *stripes*, in turn, and a claim writes all of them. So more than 32 transactions that
/// overlap meet, and the driver repeats one of two that do.
///
/// **A claim waits** for transactions that have entered, at most 5 s, and may then be made again. One whose
/// process was killed stays open in the server for `transactionLifetimeLimitSeconds`, 60 s by default, and so
/// long the claims of its resource time out. To bound it, end the predecessor's sessions (`killSessions`), as
/// `examples/settlement` does, or lower the parameter.
///
/// Writes without a transaction: [`FencedCollection`].
///
/// Needs a replica set or a sharded cluster, as transactions do (not so [`FencedCollection`]), and a database
/// other than `local`, `admin` and `config`. **On a sharded cluster** a transaction over several shards
/// becomes visible shard by shard, and a read with `local` or `majority` does not wait for it: after a claim
/// it may still miss what the predecessor has committed. Read there in a transaction with read concern
/// `snapshot` that has entered, or with [`FencedCollection::claim_one`]. A resource is `_id`, so a sharded
/// collection of marks needs `_id` as its shard key. All requests run where they are awaited, on the runtime
/// of the client that `database` belongs to; it must be the same client as the session's.
///
/// ```no_run
/// use mongodb::bson::doc;
/// use tenure_core::{Fence, Leases, ResourceName, Term};
/// use tenure_mongodb::MongoFence;
///
/// async fn settle(client: &mongodb::Client, term: Term) -> Result<(), Box<dyn std::error::Error>> {
///     let database = client.database("bank");
///     let fence = MongoFence::new(&database, Leases::Here);
///     let ledger = ResourceName::new("ledger")?;
///     // Before the first read of what this term will change.
///     fence.claim(&ledger, &term).await?;
///
///     let accounts = database.collection::<mongodb::bson::Document>("accounts");
///     let mut session = client.start_session().await?;
///     // Runs the closure again for as long as the conflict is a passing one.
///     let settled = session
///         .start_transaction()
///         .and_run2(async move |session| {
///             fence.enter(session, &ledger, &term).await?;
///             let five_more = doc! { "$inc": { "cents": 5 } };
///             accounts.update_one(doc! { "_id": 1 }, five_more).session(&mut *session).await?;
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
#[derive(Clone)]
pub struct MongoFence {
    database: Database,
    repeats: Repeats,
    marks: Collection<Document>,
    /// The leases, where they are in the same database.
    leases: Option<Collection<Document>>,
    namespace: String,
    turn: Arc<Turn>,
    noter: Arc<Noter<Beside>>,
    /// Whether a primary has proved to a majority of its set that it is the primary.
    is_of_a_set: Arc<AtomicBool>,
}

impl MongoFence {
    /// The fence in the collection `fences` of `database`.
    ///
    /// Where the leases are here, they are in the store's collection, `job_leases`
    /// ([`leases_in`](Self::leases_in) another), and a token from the future is known exactly; that costs one
    /// read a claim. Where they are elsewhere, it is known by the server's clock and not exactly, and what a
    /// lease of the same name has been granted here, perhaps before the leases went elsewhere, says nothing.
    #[must_use]
    pub fn new(database: &Database, leases: Leases) -> Self {
        Self::in_collection(database, COLLECTION, leases)
    }

    /// The fence in a collection of another name.
    #[must_use]
    pub fn in_collection(database: &Database, name: &str, leases: Leases) -> Self {
        let marks = collection(database, name, REQUEST_TIME_MAX);
        Self {
            database: database.clone(),
            repeats: Repeats::Writes,
            noter: Noter::new(Beside(marks.clone())),
            marks,
            leases: match leases {
                Leases::Here => Some(collection(database, LEASES, REQUEST_TIME_MAX)),
                Leases::Elsewhere => None,
            },
            namespace: format!("{}.{name}", database.name()),
            turn: Arc::new(Turn::new()),
            is_of_a_set: Arc::default(),
        }
    }

    /// The same fence, where the leases are in the collection of this name: here and not elsewhere.
    #[must_use]
    pub fn leases_in(mut self, collection_name: &str) -> Self {
        self.leases = Some(collection(&self.database, collection_name, REQUEST_TIME_MAX));
        self
    }

    /// Counts a refusal by the mark that was found; where there is none, there is nothing to count beside.
    fn refuse<T>(&self, found: Option<&Found>, error: FenceError) -> Result<T, FenceError> {
        if found.is_some() {
            self.noter.count_here(&error);
        }
        Err(error)
    }

    async fn within<T>(
        &self,
        deed: Deed,
        resource: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, FenceError> {
        let late = |_| {
            let mut error = timed_out(deed, resource, &self.namespace, REQUEST_TIME_MAX);
            error.message.push_str(OPEN_TRANSACTION);
            FenceError::Store(error)
        };
        tokio::time::timeout(REQUEST_TIME_MAX, request)
            .await
            .map_err(late)?
            .map_err(|error| {
                FenceError::Store(self.repeats.store_error(&error, deed, resource, &self.namespace))
            })
    }
}

impl fmt::Debug for MongoFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: its options hold passwords, and not all of them are hidden.
        f.debug_struct("MongoFence")
            .field("place", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Fence for MongoFence {
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        Box::pin(self.raise(resource, term))
    }

    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        Box::pin(self.checked(resource, term))
    }

    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        Box::pin(self.shown(resource))
    }

    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        Box::pin(self.page(after))
    }

    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        Box::pin(self.lift(bump))
    }

    fn count_refusal(&self, refusal: &FenceError) {
        self.noter.count_here(refusal);
    }

    fn note_refusals(&self) -> Answer<'_, ()> {
        Box::pin(self.noter.note())
    }
}

/// What may be the matter when a claim gets no answer.
const OPEN_TRANSACTION: &str =
    "; an open transaction of an earlier term may hold the mark, for at most 60s by default; claim again";

fn subject(resource: &ResourceName) -> String {
    format!("fence \"{resource}\"")
}
