use crate::fault::Deed;
use crate::pipeline::{change_if, is_term, purge_at_by_record, unreleased};
use crate::record::Record;
use crate::site::{Site, subject};
use mongodb::bson::{bson, doc};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Fault, Release, Released, StoreError};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many releases of a batch are under way at once. A batch of updates would be one round trip, but its
/// counts do not tell which lease was given back, and a read afterwards may find the next holder's term
/// already. The driver keeps more connections than that; the rest are left for renewals.
const RELEASES_AT_ONCE: usize = 8;

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
        let permits = Arc::new(Semaphore::new(RELEASES_AT_ONCE));
        let mut running = JoinSet::new();
        for (index, request) in requests.into_iter().enumerate() {
            let (site, permits) = (Arc::clone(&self), Arc::clone(&permits));
            running.spawn(async move {
                let _permit = permits.acquire().await;
                (index, site.release_in_time(&request).await)
            });
        }
        let collecting = async {
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

    async fn release_in_time(&self, request: &Release) -> Result<Released, StoreError> {
        self.in_time(Deed::Write, &subject(&request.name), self.release_one(request))
            .await
    }

    async fn release_one(&self, request: &Release) -> Result<Released, StoreError> {
        let term = is_term(request.incarnation, request.token, request.attempt);
        let changes = doc! {
            "released": { "generation": "$generation", "at": "$$NOW" },
            "expiresAt": { "$min": ["$expiresAt", "$$NOW"] },
            "stepDownAsked": null,
            "purgeAt": purge_at_by_record(self.purge_after),
        };
        let condition = bson!({ "$and": [term, unreleased()] });
        let pipeline = change_if(condition, changes);
        let is_mine = |record: &Record| record.is_term(request.incarnation, request.token, request.attempt);
        let changed = self.change(&request.name, pipeline, self.time_max).await?;
        if changed.is_some_and(|record| is_mine(&record) && record.lease.released) {
            return Ok(Released::Vacated);
        }
        // A primary that was deposed does not know whose it is, and may not say that it is another's.
        match self.read(&request.name).await? {
            Some(record) if is_mine(&record) && record.lease.released => Ok(Released::Vacated),
            Some(record) if is_mine(&record) => Err(StoreError::unknown(
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
}
