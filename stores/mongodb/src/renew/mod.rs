//! Renewals: one lease alone, or many by one command; what keeps a part of those waiting keeps no other.

mod split;
mod together;

use crate::fault::{Deed, after_a_step, timed_out};
use crate::pipeline::{change_if, extension, held, is_term};
use crate::record::{Record, Shown};
use crate::site::{Site, subject};
use mongodb::bson::{Bson, bson};
pub(crate) use split::{PARTS_AT_ONCE, Stuck};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Fault, Renew, Renewed, StoreError, Ttl};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

type Verdict = Result<Renewed, StoreError>;

/// How many leases of a batch are looked at once more at the same time. Most batches lose none.
const READS_AT_ONCE: usize = 8;

/// A renewal may take a third of its ttl. It is judged by the clock at which it arrived, so where somebody
/// keeps the record locked, this is how long after its end a lease may be revived.
const PARTS_OF_TTL: u32 = 3;

/// A renewal may take so long whatever the ttl: less would end those of a busy server, which nobody keeps
/// waiting.
const RENEWAL_TIME_LEAST: Duration = Duration::from_secs(1);

impl Site {
    /// Extends leases: one alone in one round trip, several in two; more where some were not extended.
    pub(crate) async fn renew(self: &Arc<Self>, requests: &[Renew]) -> Vec<Verdict> {
        self.seen.forget(requests.iter().map(|request| &request.name));
        match requests {
            [] => Vec::new(),
            [only] => {
                let renewed = self.renew_one(only);
                vec![self.in_time(Deed::Write, &subject(&only.name), renewed).await]
            }
            several => {
                let late = |request: &Renew| {
                    timed_out(Deed::Write, &subject(&request.name), &self.place, self.time_max)
                };
                let mut verdicts: Vec<Verdict> = several.iter().map(|request| Err(late(request))).collect();
                let end = Instant::now() + self.time_max;
                // What is known by then is told, whatever else is still awaited.
                let _late = tokio::time::timeout_at(end, self.renew_several(several, &mut verdicts)).await;
                self.confirm_lost(several, &mut verdicts, end).await;
                verdicts
            }
        }
    }

    async fn renew_one(&self, request: &Renew) -> Verdict {
        let verdict = self.extend_one(request).await;
        self.stuck.note(&request.name, &verdict);
        verdict
    }

    async fn extend_one(&self, request: &Renew) -> Verdict {
        let time_max = self.renewal_time_max(request.ttl);
        let changes = extension(request.ttl, self.purge_after);
        let pipeline = change_if(is_held_term(request), changes);
        match self.change(&request.name, pipeline, time_max).await? {
            // Of the same command, so by the same clock: held and ours means that it was extended.
            Some(Shown { record, .. }) if is_mine(request, &record) && record.is_held() => {
                Ok(extended(&record))
            }
            // Or there is no record: the read says which it is.
            Some(_) | None => self.read_lost(request).await,
        }
    }

    fn renewal_time_max(&self, ttl: Ttl) -> Duration {
        let part = ttl.duration() / PARTS_OF_TTL;
        self.time_max.min(part.max(RENEWAL_TIME_LEAST))
    }

    /// Looks once more at a lease that was not extended, so that nothing newer can exist: a primary that was
    /// deposed does not know, and a term that is told as lost ends.
    async fn read_lost(&self, request: &Renew) -> Verdict {
        match self.read(&request.name).await? {
            Some(record) if is_mine(request, &record) && record.is_held() => Err(StoreError::unknown(
                Fault::Busy,
                format!(
                    "{} at {}: it was not extended by a server that was behind; ask again",
                    subject(&request.name),
                    self.place
                ),
            )),
            found => Ok(Renewed::Lost(found.map(|record| Box::new(record.lease)))),
        }
    }

    /// The same for those of a batch that seem to be lost, some at a time. What is not answered by then stays
    /// unknown.
    async fn confirm_lost(self: &Arc<Self>, requests: &[Renew], verdicts: &mut [Verdict], end: Instant) {
        let permits = Arc::new(Semaphore::new(READS_AT_ONCE));
        let mut running = JoinSet::new();
        for (place, verdict) in verdicts.iter_mut().enumerate() {
            if !matches!(verdict, Ok(Renewed::Lost(_))) {
                continue;
            }
            let request = requests[place].clone();
            *verdict = Err(timed_out(
                Deed::Write,
                &subject(&request.name),
                &self.place,
                self.time_max,
            ));
            let (site, permits) = (Arc::clone(self), Arc::clone(&permits));
            running.spawn(async move {
                let _permit = permits.acquire().await;
                (place, site.read_lost(&request).await)
            });
        }
        let collecting = async {
            while let Some(finished) = running.join_next().await {
                if let Ok((place, verdict)) = finished {
                    verdicts[place] = verdict.map_err(after_a_step);
                }
            }
        };
        let _late = tokio::time::timeout_at(end, collecting).await;
    }
}

/// The record is of the very term, and somebody, so its holder, holds it now.
fn is_held_term(request: &Renew) -> Bson {
    bson!({ "$and": [is_term(request.incarnation, request.token, request.attempt), held()] })
}

fn is_mine(request: &Renew, record: &Record) -> bool {
    record.is_term(request.incarnation, request.token, request.attempt)
}

fn extended(record: &Record) -> Renewed {
    Renewed::Extended {
        ttl: record.lease.ttl,
        wish: record.wish(),
    }
}
