//! Where a store's records live, and the bounds of every request to it.

use crate::fault::{Deed, Repeats, timed_out};
use crate::heard::Heard;
use crate::identity::Identity;
use crate::login::{Login, USER_WAS_DROPPED};
use crate::record::{Record, Shown, whole};
use crate::renew::Stuck;
use crate::seen::Seen;
use mongodb::bson::{Document, doc};
use mongodb::error::Error;
use mongodb::options::{
    Acknowledgment, ClientOptions, CollectionOptions, ReadConcern, ReadPreference, ReturnDocument,
    SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Collection, Database};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tenure_core::{Certainty, Fault, LeaseName, StoreError};
use tenure_remote::WatchPlaces;
pub(crate) use tenure_remote::lease_subject as subject;
use tokio::sync::Semaphore;

/// How long one look whether a majority confirms writes may take; less than connecting, of which it is a
/// part.
const CONFIRMATION_TIME_MAX: Duration = Duration::from_secs(2);

/// What kind of deployment answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Topology {
    /// One server without replication: no change streams, no transactions.
    Standalone,
    /// A replica set, of any number of members.
    ReplicaSet {
        /// Its name.
        name: String,
    },
    /// A sharded cluster, behind routers.
    Sharded,
}

impl Topology {
    /// Of what a server here is a member; `None` of one that stands alone.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Standalone => None,
            Self::ReplicaSet { name } => Some(format!("the replica set \"{name}\"")),
            Self::Sharded => Some("a sharded cluster".to_owned()),
        }
    }
}

/// The collection of the records, with the concerns that every request to it has.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) client: Client,
    pub(crate) repeats: Repeats,
    pub(crate) database: Database,
    pub(crate) leases: Collection<Document>,
    /// Whether the URL ties all requests to the one server that it names (`directConnection=true`), whatever
    /// that is of its set.
    pub(crate) is_tied: bool,
    /// Host, database and collection, for people.
    pub(crate) place: String,
    /// Those of the URL: the routers of a sharded cluster. None where a client was given, which does not show
    /// them.
    pub(crate) hosts: Vec<String>,
    /// `database.collection`.
    pub(crate) namespace: String,
    pub(crate) topology: Topology,
    pub(crate) purge_after: Option<Duration>,
    /// The store's own bound on one request, beside the engine's.
    pub(crate) time_max: Duration,
    /// Parts of batches of renewals take turns.
    pub(crate) parts: Arc<Semaphore>,
    pub(crate) stuck: Arc<Stuck>,
    /// So do the releases of batches.
    pub(crate) releases: Arc<Semaphore>,
    /// Which of a batch of releases goes first.
    pub(crate) first_release: Arc<AtomicUsize>,
    pub(crate) seen: Arc<Seen>,
    /// Of this client.
    pub(crate) identity: Arc<Identity>,
    /// `None` where a client was given: nobody knows its options.
    pub(crate) login: Option<Arc<Login>>,
    /// How many more watches there may be.
    pub(crate) watches: WatchPlaces,
}

/// Confirmed by a majority, and in the journal. Set on every write, whatever the URL or the cluster's
/// default says: with less, a fail-over can take an acknowledged term back.
pub(crate) fn write_concern(time_max: Duration) -> WriteConcern {
    WriteConcern::builder()
        .w(Acknowledgment::Majority)
        .journal(true)
        .w_timeout(time_max)
        .build()
}

/// The collection with our concerns: majority and journal, and reads from the primary only.
pub(crate) fn collection(database: &Database, name: &str, time_max: Duration) -> Collection<Document> {
    let options = CollectionOptions::builder()
        .write_concern(write_concern(time_max))
        .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
        .read_concern(ReadConcern::majority())
        .build();
    database.collection_with_options(name, options)
}

impl Site {
    /// The same place, by another client of ours, of which the driver tells by `heard`.
    pub(crate) fn over(&self, client: Client, options: &ClientOptions, heard: Arc<Heard>) -> Self {
        let database = client.database(self.database.name());
        Self {
            leases: collection(&database, self.leases.name(), self.time_max),
            database,
            client,
            identity: Arc::new(self.identity.of_another_client(heard)),
            login: Some(Login::of(options)),
            ..self.clone()
        }
    }

    /// What the driver's error means here.
    pub(crate) fn error(&self, error: &Error, deed: Deed, subject: &str) -> StoreError {
        match &self.login {
            Some(login) if login.ends_by(error) => deed.error(
                Fault::Unauthenticated,
                Certainty::NotApplied,
                subject,
                &self.place,
                USER_WAS_DROPPED.to_owned(),
            ),
            _ => self.repeats.store_error(error, deed, subject, &self.place),
        }
    }

    /// Waits for the driver at most [`Site::time_max`].
    pub(crate) async fn within<T>(
        &self,
        deed: Deed,
        subject: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        self.within_time(self.time_max, deed, subject, request).await
    }

    /// Waits for the driver at most `time_max`.
    pub(crate) async fn within_time<T>(
        &self,
        time_max: Duration,
        deed: Deed,
        subject: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(time_max, request).await {
            Ok(answer) => answer.map_err(|error| self.error(&error, deed, subject)),
            Err(_late) => Err(timed_out(deed, subject, &self.place, time_max)),
        }
    }

    /// The same for a whole operation, which may take more than one request.
    pub(crate) async fn in_time<T>(
        &self,
        deed: Deed,
        subject: &str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let late = |_| Err(timed_out(deed, subject, &self.place, self.time_max));
        tokio::time::timeout(self.time_max, work)
            .await
            .unwrap_or_else(late)
    }

    /// Asks for the very confirmation that every lease has, by an update that matches nothing: the server
    /// confirms it no sooner than the latest write before it. Who has no majority says so well before whoever
    /// waits has given up.
    pub(crate) async fn confirms(&self) -> Result<(), StoreError> {
        let update = self
            .leases
            .update_one(doc! { "_id": { "$in": [] } }, doc! { "$set": { "owner": "" } })
            .write_concern(write_concern(CONFIRMATION_TIME_MAX));
        self.within(
            Deed::Read,
            "a confirmed and journalled write",
            update.into_future(),
        )
        .await
        .map(drop)
    }

    /// Changes one record by `pipeline`, atomically, and answers with the record as it is then; `None` if
    /// there is none. One that cannot be understood is left as it is, and is an error. A record that the
    /// pipeline leaves as it is costs no write, and the majority has confirmed the server's latest write, not
    /// that it still leads: such an answer may be as old as its last contact with the majority. What it would
    /// end is looked at by [`Self::read`] first.
    pub(crate) async fn change(
        &self,
        name: &LeaseName,
        pipeline: Vec<Document>,
        time_max: Duration,
    ) -> Result<Option<Shown>, StoreError> {
        let request = self
            .leases
            .find_one_and_update(doc! { "_id": name.as_str() }, pipeline)
            .return_document(ReturnDocument::After)
            .projection(whole())
            .max_time(time_max);
        let answer = self
            .within_time(time_max, Deed::Write, &subject(name), request.into_future())
            .await?;
        answer
            .map(|answer| Shown::read(answer, &self.namespace))
            .transpose()
    }

    /// The same for a pipeline that leaves alone whatever is not as it was seen last; `None` also where that
    /// cannot be understood. Its holder may go by it all the same, and the common statement says so.
    pub(crate) async fn change_as_seen(
        &self,
        name: &LeaseName,
        pipeline: Vec<Document>,
        time_max: Duration,
    ) -> Result<Option<Shown>, StoreError> {
        match self.change(name, pipeline, time_max).await {
            Err(error) if error.fault == Fault::Unreadable => Ok(None),
            changed => changed,
        }
    }

    /// Reads one record so that nothing newer can exist: from the primary, which proves to a majority that
    /// it still is the primary. (A standalone server has no other, and does not know the word.)
    pub(crate) async fn read(&self, name: &LeaseName) -> Result<Option<Record>, StoreError> {
        let concern = match self.topology {
            Topology::Standalone => ReadConcern::local(),
            Topology::ReplicaSet { .. } | Topology::Sharded => ReadConcern::linearizable(),
        };
        let request = self
            .leases
            .find_one(doc! { "_id": name.as_str() })
            .projection(whole())
            .read_concern(concern)
            .max_time(self.time_max);
        let answer = self
            .within(Deed::Read, &subject(name), request.into_future())
            .await?;
        answer
            .map(|answer| Shown::read(answer, &self.namespace).map(|shown| shown.record))
            .transpose()
    }
}
