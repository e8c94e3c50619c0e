//! The bucket as a store that compares and swaps.

use crate::ages::ages;
use crate::api::{Condition, NONE, Put, Stored};
use crate::clock::LeaderClock;
use crate::keys::Keys;
use crate::link::Link;
use crate::record::{decode, encode};
use crate::site::traits;
use crate::url::Host;
use crate::watch::WATCHES_MAX;
use std::sync::Arc;
use tenure_core::{
    Ages, Answer, CompareAndSwap, Durability, Entry, Fault, Finding, Floor, LeaseName, Page, Reading,
    RecordPage, RecordWatch, Revision, Scope, StoreError, StoreTraits, Version, Written,
};
use tenure_remote::{WatchPlaces, lease_subject};

/// The records of one bucket over one connection.
#[derive(Clone)]
pub(crate) struct Kv {
    pub(crate) link: Arc<Link>,
    pub(crate) keys: Keys,
    pub(crate) stream: String,
    pub(crate) durability: Durability,
    /// Where the servers tell of themselves over HTTP.
    pub(crate) monitors: Vec<Host>,
    pub(crate) clock: LeaderClock,
    /// How many more watches there may be.
    pub(crate) watches: WatchPlaces,
}

impl Kv {
    pub(crate) fn new(
        link: Arc<Link>,
        keys: Keys,
        durability: Durability,
        monitors: Vec<Host>,
        clock: LeaderClock,
    ) -> Self {
        Self {
            link,
            stream: keys.stream(),
            keys,
            durability,
            monitors,
            clock,
            watches: WatchPlaces::new(WATCHES_MAX),
        }
    }

    /// The server's clock in milliseconds, as the stream's leader tells it.
    pub(crate) async fn clock_ms(&self, subject: &str) -> Result<u64, StoreError> {
        self.link.clock_ms(&self.keys, subject).await
    }

    async fn last(&self, name: &LeaseName) -> Result<Option<Stored>, StoreError> {
        let (of, subject) = (self.keys.lease(name), lease_subject(name));
        self.link.last(&self.stream, &of, &subject).await
    }

    /// A record as it was stored; `None` where it was removed.
    pub(crate) fn version(&self, name: &str, stored: Stored) -> Result<Option<Version>, StoreError> {
        let Some(value) = stored.value else {
            return Ok(None);
        };
        let entry = decode(self.keys.key(&stored.subject), name, &value)?;
        Ok(Some(Version {
            revision: Revision::from(stored.sequence).in_epoch(stored.epoch),
            ages: self.ages(&entry, stored.time_ms),
            entry,
        }))
    }

    /// How old it is now that was stored then, by the leader's clock.
    pub(crate) fn ages(&self, entry: &Entry, stored_ms: u64) -> Option<Ages> {
        let now_ms = self.clock.about_now_ms()?;
        Some(ages(entry, stored_ms, now_ms))
    }

    /// Sees to it that lookers are told ages by a reading of the leader's clock that is not old.
    pub(crate) async fn keep_clock(&self) {
        self.clock.keep(self.clock_ms("the ages of leases")).await;
    }

    async fn put(&self, name: &LeaseName, entry: &Entry, over: Condition<'_>) -> Result<Written, StoreError> {
        let (to, subject) = (self.keys.lease(name), lease_subject(name));
        let put = self.link.put(&self.stream, &to, encode(entry), over, &subject);
        Ok(match put.await? {
            Put::As { sequence, epoch } => Written::As(Revision::from(sequence).in_epoch(epoch)),
            Put::Conflict => Written::Conflict,
        })
    }

    async fn create_record(&self, name: &LeaseName, entry: &Entry) -> Result<Written, StoreError> {
        let created = self.put(name, entry, Condition::last_is(NONE, 0)).await?;
        if created != Written::Conflict {
            return Ok(created);
        }
        // Where a record was removed by an operator, a mark of that stands in its place. Nothing of ours was
        // written yet.
        let seen = self.last(name).await.map_err(|error| StoreError {
            certainty: tenure_core::Certainty::NotApplied,
            ..error
        })?;
        match seen {
            Some(Stored {
                value: None,
                sequence,
                epoch,
                ..
            }) => self.put(name, entry, Condition::last_is(sequence, epoch)).await,
            Some(_) | None => Ok(Written::Conflict),
        }
    }
}

impl CompareAndSwap for Kv {
    fn traits(&self) -> StoreTraits {
        traits(self.link.place(), self.durability)
    }

    fn read<'a>(&'a self, name: &'a LeaseName, floor: Floor) -> Answer<'a, Result<Reading, StoreError>> {
        Box::pin(async move {
            let clock = async {
                match floor {
                    Floor::Wanted => self.clock.at_least(self.clock_ms(&lease_subject(name))).await,
                    Floor::Unwanted => Ok(0),
                }
            };
            // Side by side: a term costs no third round trip.
            let (stored, token_floor) = tokio::try_join!(self.last(name), clock)?;
            let found = match stored {
                Some(stored) => self.version(name.as_str(), stored)?,
                None => None,
            };
            Ok(Reading { found, token_floor })
        })
    }

    fn create<'a>(
        &'a self,
        name: &'a LeaseName,
        entry: &'a Entry,
    ) -> Answer<'a, Result<Written, StoreError>> {
        Box::pin(self.create_record(name, entry))
    }

    fn swap<'a>(
        &'a self,
        name: &'a LeaseName,
        revision: &'a Revision,
        entry: &'a Entry,
    ) -> Answer<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            let Ok(over) = revision.as_str().parse() else {
                let message = format!("{}: {revision:?} is none of NATS", lease_subject(name));
                return Err(StoreError::not_applied(Fault::Internal, message));
            };
            self.put(name, entry, Condition::last_is(over, revision.epoch()))
                .await
        })
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<RecordPage, StoreError>> {
        Box::pin(self.page(page))
    }

    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn RecordWatch>, StoreError>> {
        Box::pin(async move { Ok(Box::new(self.open_watch(scope).await?) as Box<dyn RecordWatch>) })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(self.findings())
    }
}
