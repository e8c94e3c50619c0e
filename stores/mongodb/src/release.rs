use crate::fault::Deed;
use crate::pipeline::{change_if, is_term, purge_at_by_record, unreleased};
use crate::record::{Record, Shown, decode};
use crate::short;
use crate::site::{Site, subject};
use mongodb::bson::{Bson, Document, bson, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenure_core::{Fault, Release, Released, StoreError};
use tokio::task::JoinSet;

/// How many releases of batches are under way at once, of all batches. A batch of updates would be one round
/// trip, but its counts do not tell which lease was given back, and a read afterwards may find the next
/// holder's term already. The driver keeps more connections than that; the rest are left for renewals.
pub(crate) const RELEASES_AT_ONCE: usize = 8;

/// How long a batch looks for what it has released before: it must not take the time in which it could be
/// released.
const LOOK_TIME_MAX: Duration = Duration::from_millis(250);

/// How long a whole batch of releases may take.
const BATCH_TIME_MAX: Duration = Duration::from_secs(30);

impl Site {
    /// Gives leases back, each in one atomic step.
    pub(crate) async fn release(
        self: Arc<Self>,
        requests: Vec<Release>,
    ) -> Vec<Result<Released, StoreError>> {
        if let [only] = requests.as_slice() {
            return vec![self.release_in_time(only).await];
        }
        let unfinished =
            || StoreError::unknown(Fault::Internal, "a release of a batch was given up; ask again");
        let mut answers: Vec<_> = requests.iter().map(|_| Err(unfinished())).collect();
        let mut running = JoinSet::new();
        let collecting = async {
            // A batch that was given up goes on where it was when it is asked for again.
            let looking = tokio::time::timeout(LOOK_TIME_MAX, self.released_before(&requests));
            let done = looking.await.unwrap_or_default();
            // Each time others first: those whose records somebody keeps locked must not be so every time.
            let first =
                self.first_release.fetch_add(RELEASES_AT_ONCE, Ordering::Relaxed) % requests.len().max(1);
            for index in (first..requests.len()).chain(0..first) {
                if done.contains(&index) {
                    answers[index] = Ok(Released::Vacated);
                    continue;
                }
                let request = requests[index].clone();
                let site = Arc::clone(&self);
                running.spawn(async move {
                    let _permit = site.releases.acquire().await;
                    (index, site.release_in_time(&request).await)
                });
            }
            while let Some(finished) = running.join_next().await {
                if let Ok((index, answer)) = finished {
                    answers[index] = answer;
                }
            }
        };
        // What is not answered by then stays unknown, and is asked for again.
        let _late = tokio::time::timeout(BATCH_TIME_MAX, collecting).await;
        answers
    }

    /// The places of those whose release a majority has confirmed: no term takes that back. Whatever cannot
    /// be read is released by a request of its own, which says why.
    async fn released_before(&self, requests: &[Release]) -> BTreeSet<usize> {
        let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, request) in requests.iter().enumerate() {
            places.entry(request.name.as_str()).or_default().push(place);
        }
        let names: Vec<&str> = places.keys().copied().collect();
        let filter = doc! { "_id": { "$in": names }, "released": { "$type": "object" } };
        let found = self.read_page(filter, i64::try_from(places.len()).unwrap_or(i64::MAX));
        let mut done = BTreeSet::new();
        for document in found.await.unwrap_or_default() {
            let Ok(record) = decode(&document, &self.namespace) else {
                continue;
            };
            let places = places.get(record.lease.name.as_str()).into_iter().flatten();
            done.extend(places.filter(|place| is_mine(&requests[**place], &record) && record.lease.released));
        }
        done
    }

    async fn release_in_time(&self, request: &Release) -> Result<Released, StoreError> {
        self.in_time(Deed::Write, &subject(&request.name), self.release_one(request))
            .await
    }

    async fn release_one(&self, request: &Release) -> Result<Released, StoreError> {
        if self.vacate_as_seen(request).await? {
            return Ok(Released::Vacated);
        }
        let term = is_term(request.incarnation, request.token, request.attempt);
        let changes = end(purge_at_by_record(self.purge_after));
        let condition = bson!({ "$and": [term, unreleased()] });
        let pipeline = change_if(condition, changes);
        if self.vacate(request, pipeline).await? {
            return Ok(Released::Vacated);
        }
        // A primary that was deposed does not know whose it is, and may not say that it is another's.
        match self.read(&request.name).await? {
            Some(record) if is_mine(request, &record) && record.lease.released => Ok(Released::Vacated),
            Some(record) if is_mine(request, &record) => Err(StoreError::unknown(
                Fault::Busy,
                format!(
                    "{} at {}: it was not given back by a server that was behind; ask again",
                    subject(&request.name),
                    self.place
                ),
            )),
            found => Ok(Released::NotYours(found.map(|record| Box::new(record.lease)))),
        }
    }

    /// The short way. Whether the term is given back.
    async fn vacate_as_seen(&self, request: &Release) -> Result<bool, StoreError> {
        let seen = self.seen.take(&request.name);
        match seen.and_then(|seen| short::vacate(request, seen, self.purge_after)) {
            Some(pipeline) => {
                let shown = self
                    .change_as_seen(&request.name, pipeline, self.time_max)
                    .await?;
                Ok(self.is_vacated(request, shown))
            }
            None => Ok(false),
        }
    }

    /// Has the server change the record. Whether the term is given back then; so it is kept in mind.
    async fn vacate(&self, request: &Release, pipeline: Vec<Document>) -> Result<bool, StoreError> {
        let shown = self.change(&request.name, pipeline, self.time_max).await?;
        Ok(self.is_vacated(request, shown))
    }

    fn is_vacated(&self, request: &Release, shown: Option<Shown>) -> bool {
        let vacated = shown.filter(|Shown { record, .. }| is_mine(request, record) && record.lease.released);
        vacated.map(|shown| self.seen.keep(shown)).is_some()
    }
}

/// What gives a term back, by whichever way.
pub(crate) fn end(purge_at: Bson) -> Document {
    doc! {
        "released": { "generation": "$generation", "at": "$$NOW" },
        "expiresAt": { "$min": ["$expiresAt", "$$NOW"] },
        "stepDownAsked": null,
        "purgeAt": purge_at,
    }
}

fn is_mine(request: &Release, record: &Record) -> bool {
    record.is_term(request.incarnation, request.token, request.attempt)
}
