//! A batch of renewals of which something keeps a part waiting: it is asked for again in smaller parts, so
//! that in the end nobody waits along.

use super::Verdict;
use super::together::{Answers, STATEMENT_LEASES_MAX};
use crate::fault::{Deed, after_a_step, timed_out};
use crate::site::{Site, subject};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::{Fault, LeaseName, Renew};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Parts of batches that are under way at once, of all batches: the rest of the connections are left for what
/// is not kept waiting.
pub(crate) const PARTS_AT_ONCE: usize = 8;

/// Whoever asks for a renewal waits for a tenth of the ttl, unless set otherwise. By then each verdict that
/// can be had is told.
const TTLS_PART_WAITED: u32 = 10;

/// It is not hurried more than this, of which the whole gets a third: a shorter time would break off what a
/// busy server does, which nobody keeps waiting. With a ttl below ten times that, who asks may have given up
/// before all parts were asked for.
const WAITED_LEAST: Duration = Duration::from_secs(3);

/// Most names that are known to be kept waiting.
const STUCK_MAX: usize = 1_000;

/// The leases whose renewal, alone, has last taken too long: they keep no batch waiting again.
#[derive(Debug)]
pub(crate) struct Stuck {
    names: Mutex<BTreeSet<LeaseName>>,
    /// Who is asked for first.
    first: AtomicUsize,
    /// Of their own: who is kept waiting keeps nobody from a turn who is not.
    turns: Semaphore,
}

impl Default for Stuck {
    fn default() -> Self {
        Self {
            names: Mutex::default(),
            first: AtomicUsize::new(0),
            turns: Semaphore::new(PARTS_AT_ONCE),
        }
    }
}

impl Stuck {
    pub(super) fn note(&self, name: &LeaseName, verdict: &Verdict) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match verdict {
            Err(error) if error.fault == Fault::TimedOut => {
                if names.len() >= STUCK_MAX {
                    names.clear();
                }
                names.insert(name.clone());
            }
            Ok(_) | Err(_) => drop(names.remove(name)),
        }
    }

    /// The places of those that may be asked for together, and of those that go alone: each time others of
    /// them first, as not all may get their turn.
    fn part(&self, requests: &[Renew]) -> (Vec<usize>, Vec<usize>) {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |place: &usize| !names.contains(&requests[*place].name);
        let (together, mut alone): (Vec<usize>, Vec<usize>) = (0..requests.len()).partition(is_free);
        if !alone.is_empty() {
            let first = self.first.fetch_add(PARTS_AT_ONCE, Ordering::Relaxed) % alone.len();
            alone.rotate_left(first);
        }
        (together, alone)
    }
}

/// How long the parts of a batch may take.
#[derive(Clone, Copy)]
struct Pace {
    whole: Duration,
    part: Duration,
    /// When the last part may begin, so that it is over before nobody waits any more.
    begun_by: Instant,
}

impl Pace {
    fn of(requests: &[Renew], time_max: Duration) -> Self {
        let shortest = requests.iter().map(|request| request.ttl.duration()).min();
        let waited = shortest.unwrap_or(time_max) / TTLS_PART_WAITED;
        let waited = waited.max(WAITED_LEAST).min(time_max);
        Self {
            whole: waited / 3,
            part: waited / 6,
            begun_by: Instant::now() + waited * 2 / 3,
        }
    }
}

impl Site {
    /// Extends several leases: all by one command; what that does not come to, in parts of one statement
    /// each; what those do not come to, one by one. Beside that, and one by one, those that kept a batch
    /// waiting before.
    pub(super) async fn renew_several(self: &Arc<Self>, requests: &[Renew], verdicts: &mut [Verdict]) {
        let pace = Pace::of(requests, self.time_max);
        let (together, alone) = self.stuck.part(requests);
        let mut waiting = JoinSet::new();
        for place in alone {
            let (site, request) = (Arc::clone(self), requests[place].clone());
            waiting.spawn(async move {
                let answers = site.renew_part_in_turn(&site.stuck.turns, &[request], pace).await;
                (place, answers.verdicts.into_iter().next())
            });
        }
        self.renew_in_rounds(requests, verdicts, together, pace).await;
        while let Some(finished) = waiting.join_next().await {
            if let Ok((place, Some(verdict))) = finished {
                verdicts[place] = verdict;
            }
        }
    }

    async fn renew_in_rounds(
        self: &Arc<Self>,
        requests: &[Renew],
        verdicts: &mut [Verdict],
        together: Vec<usize>,
        pace: Pace,
    ) {
        let mut parts = vec![together];
        parts.retain(|part| !part.is_empty());
        let mut is_first_round = true;
        while !parts.is_empty() {
            let mut running = JoinSet::new();
            for part in std::mem::take(&mut parts) {
                let batch: Vec<Renew> = part.iter().map(|place| requests[*place].clone()).collect();
                let site = Arc::clone(self);
                running.spawn(async move {
                    let answers = match is_first_round {
                        true => site.renew_part(&batch, pace.whole).await,
                        false => site.renew_part_in_turn(&site.parts, &batch, pace).await,
                    };
                    (part, answers)
                });
            }
            while let Some(finished) = running.join_next().await {
                let Ok((part, answers)) = finished else { continue };
                for (place, verdict) in part.iter().zip(answers.verdicts) {
                    // It may have been extended by an earlier part.
                    verdicts[*place] = if is_first_round {
                        verdict
                    } else {
                        verdict.map_err(after_a_step)
                    };
                }
                let left: Vec<usize> = answers.unreached.into_iter().map(|index| part[index]).collect();
                let most = if part.len() > STATEMENT_LEASES_MAX {
                    STATEMENT_LEASES_MAX
                } else {
                    1
                };
                parts.extend(left.chunks(most).map(<[usize]>::to_vec));
            }
            is_first_round = false;
        }
    }

    async fn renew_part_in_turn(&self, turns: &Semaphore, requests: &[Renew], pace: Pace) -> Answers {
        let _turn = turns.acquire().await;
        if Instant::now() > pace.begun_by {
            let late =
                |request: &Renew| timed_out(Deed::Write, &subject(&request.name), &self.place, pace.part);
            return Answers::final_ones(requests.iter().map(|request| Err(late(request))).collect());
        }
        self.renew_part(requests, pace.part).await
    }

    /// One alone, too, is known by its stamp: on a set that is slow, and keeps nobody waiting, the server
    /// breaks off the wait for a majority, and what was extended is told all the same.
    async fn renew_part(&self, requests: &[Renew], time_max: Duration) -> Answers {
        let failed = |error| Answers::final_ones(vec![Err(error); requests.len()]);
        let mut answers = self
            .renew_together(requests, time_max)
            .await
            .unwrap_or_else(failed);
        if let [only] = requests {
            answers.unreached.clear();
            answers
                .verdicts
                .iter()
                .for_each(|verdict| self.stuck.note(&only.name, verdict));
        }
        answers
    }
}
