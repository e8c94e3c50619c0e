//! Reading marks.

use super::mark::{self, Found};
use super::{MongoFence, stripes, subject};
use crate::database::refuse_local;
use crate::fault::{Deed, NOT_A_REPLICA_SET, server_code};
use crate::record::shown_key;
use mongodb::Collection;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReadConcern;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use tenure_core::{
    Certainty, Cursor, Fault, FenceError, FencingToken, LeaseName, ListedMark, MARKS_MAX, Mark, MarkPage,
    ResourceName, Term, check_owner, decide_entry,
};

/// All of them.
const STRIPES: u64 = stripes::STRIPES.unsigned_abs() as u64;

/// Whether a term may enter by the mark that was found.
pub(super) fn ruled(resource: &ResourceName, term: &Term, found: Option<&Found>) -> Result<(), FenceError> {
    check_owner(resource, term, found.and_then(|found| found.lease.as_ref()))?;
    let claimant = found.and_then(Found::claimant);
    decide_entry(resource, term, claimant, found.map(|found| found.token))
}

impl MongoFence {
    /// The mark, so that nothing newer can exist.
    ///
    /// # Errors
    /// Of a fence in a database that forgets marks, too: everything that goes by a mark begins here.
    pub(super) async fn look(&self, resource: &ResourceName) -> Result<Option<Found>, FenceError> {
        refuse_local(self.database.name())?;
        let marked = doc! { "_id": resource.as_str() };
        let found = self.latest(&subject(resource), &self.marks, marked, None).await?;
        Ok(found
            .map(|found| Found::read(&found, &self.namespace))
            .transpose()?)
    }

    /// Whether `term` would be admitted now.
    pub(super) async fn checked(&self, resource: &ResourceName, term: &Term) -> Result<(), FenceError> {
        let opened = self.marks.count_documents(stripes::claimed(resource, term));
        let name = subject(resource);
        let opened = self.within(Deed::Read, &name, opened.into_future());
        let (found, opened) = tokio::join!(self.look(resource), opened);
        let found = found?;
        ruled(resource, term, found.as_ref()).or_else(|error| self.refuse(found.as_ref(), error))?;
        match opened? {
            STRIPES => Ok(()),
            _fewer => self.unentered(resource, term).await,
        }
    }

    /// Why `term` has found a stripe by which it may not enter.
    pub(super) async fn unentered(&self, resource: &ResourceName, term: &Term) -> Result<(), FenceError> {
        let found = self.look(resource).await?;
        // The mark is raised before the stripes: a term that holds it alone has not finished its claim.
        let unclaimed = FenceError::Unclaimed {
            resource: resource.clone(),
            token: term.token,
        };
        let refused = ruled(resource, term, found.as_ref()).err().unwrap_or(unclaimed);
        self.refuse(found.as_ref(), refused)
    }

    /// The highest token in the lease's record, where the leases are in the same database.
    pub(super) async fn granted(
        &self,
        resource: &ResourceName,
        lease: &LeaseName,
    ) -> Result<Option<FencingToken>, FenceError> {
        let Some(leases) = &self.leases else {
            return Ok(None);
        };
        let generation = doc! { "generation": 1 };
        let recorded = doc! { "_id": lease.as_str() };
        let found = self
            .latest(&subject(resource), leases, recorded, Some(generation))
            .await?;
        let token = found.and_then(|record| record.get_i64("generation").ok());
        Ok(token.and_then(|token| FencingToken::from_signed(token).ok()))
    }

    /// The server's clock.
    pub(super) async fn clock_ms(&self, resource: &ResourceName) -> Result<u64, FenceError> {
        let hello = self.database.run_command(doc! { "hello": 1 });
        let answer = self
            .within(Deed::Read, &subject(resource), hello.into_future())
            .await?;
        let time = answer
            .get_datetime("localTime")
            .map_or(0, |time| time.timestamp_millis());
        Ok(u64::try_from(time).unwrap_or(0))
    }

    /// The mark with its refusals.
    pub(super) async fn shown(&self, resource: &ResourceName) -> Result<Option<Mark>, FenceError> {
        let Some(found) = self.look(resource).await? else {
            return Ok(None);
        };
        let refusals = self.refusals([&found]).await?;
        Ok(Some(with_refusals(found, &refusals)))
    }

    /// A page of marks after `after`.
    pub(super) async fn page(&self, after: Option<&Cursor>) -> Result<MarkPage, FenceError> {
        let limit = i64::try_from(MARKS_MAX + 1).expect("a page is small");
        let find = async {
            let found = self
                .marks
                .find(doc! { "_id": { "$type": "string", "$gt": after.map_or("", Cursor::as_text) } })
                .sort(doc! { "_id": 1 })
                .limit(limit)
                .max_time(super::REQUEST_TIME_MAX);
            collect(found.await?).await
        };
        let documents = self.within(Deed::Read, "the fence", find).await?;
        let read: Vec<_> = documents
            .iter()
            .map(|document| Found::read(document, &self.namespace))
            .collect();
        let refusals = self.refusals(read.iter().flatten()).await?;
        let mut listed = Vec::new();
        for (document, found) in documents.iter().zip(read) {
            let mark = found.map(|found| with_refusals(found, &refusals));
            let place = Cursor::behind(document.get_str("_id").unwrap_or_default());
            listed.push((place, ListedMark::from_read(|| shown_key(document), mark)?));
        }
        Ok(MarkPage::beginning(listed))
    }

    /// What was counted beside these marks, by their resources.
    async fn refusals(&self, found: impl IntoIterator<Item = &Found>) -> Result<Refusals, FenceError> {
        let ids = found.into_iter().map(|found| mark::refusals_id(&found.resource));
        let ids: Vec<Document> = ids.collect();
        let find = async { collect(self.marks.find(doc! { "_id": { "$in": ids } }).await?).await };
        let mut refusals = Refusals::new();
        for counted in self.within(Deed::Read, "the fence", find).await? {
            let Ok(resource) = counted.get_document("_id").and_then(|id| id.get_str("resource")) else {
                continue;
            };
            // For people: what is no number is shown as none.
            let number = |field| match counted.get(field) {
                Some(Bson::Int64(number)) => *number,
                _ => 0,
            };
            let count = u64::try_from(number("count")).unwrap_or(0);
            refusals.insert(
                resource.to_owned(),
                (count, FencingToken::from_signed(number("last")).ok()),
            );
        }
        Ok(refusals)
    }

    /// One document so that nothing newer can exist: from the primary, which proves to a majority that it
    /// still is the primary. A standalone server has no other, and refuses to prove it.
    ///
    /// # Errors
    /// [`Fault::Unreachable`] where one stands alone that was a member before, as for maintenance: its set
    /// may have gone on without it.
    async fn latest(
        &self,
        subject: &str,
        collection: &Collection<Document>,
        filter: Document,
        projection: Option<Document>,
    ) -> Result<Option<Document>, FenceError> {
        let find = |concern| {
            collection
                .find_one(filter.clone())
                .projection(projection.clone().unwrap_or_default())
                .read_concern(concern)
                .max_time(super::REQUEST_TIME_MAX)
        };
        let look = async {
            match find(ReadConcern::linearizable()).await {
                Err(error) if server_code(&error) == Some(NOT_A_REPLICA_SET) => {
                    match self.is_of_a_set.load(Ordering::Relaxed) {
                        true => Ok(Err(self.left_alone(subject))),
                        false => find(ReadConcern::local()).await.map(Ok),
                    }
                }
                Ok(found) => {
                    self.is_of_a_set.store(true, Ordering::Relaxed);
                    Ok(Ok(found))
                }
                Err(error) => Err(error),
            }
        };
        self.within(Deed::Read, subject, look).await?
    }

    fn left_alone(&self, subject: &str) -> FenceError {
        FenceError::Store(Deed::Read.error(
            Fault::Unreachable,
            Certainty::NotApplied,
            subject,
            &self.namespace,
            "the server is no member of its replica set now, which may have gone on without it; start it as one again",
        ))
    }
}

/// How often a term was refused, and which was last, by resources.
type Refusals = BTreeMap<String, (u64, Option<FencingToken>)>;

fn with_refusals(found: Found, refusals: &Refusals) -> Mark {
    let (refused, last_refused) = refusals.get(found.resource.as_str()).copied().unwrap_or_default();
    Mark {
        bumped: found.claimant().is_none(),
        resource: found.resource,
        lease: found.lease,
        token: found.token,
        refused,
        last_refused,
    }
}

async fn collect(mut cursor: mongodb::Cursor<Document>) -> mongodb::error::Result<Vec<Document>> {
    let mut documents = Vec::new();
    while cursor.advance().await? {
        documents.push(cursor.deserialize_current()?);
    }
    Ok(documents)
}
