//! One server of a quorum, and asking all of them at once.

use super::Quorum;
use crate::admission::Admission;
use crate::fault::Deed;
use crate::fault::timed_out;
use crate::site::Site;
use crate::url::StoreUrl;
use std::collections::BTreeSet;
use std::future::Future;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::{Certainty, StoreError};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long one member is waited for.
const MEMBER_TIME_MAX: Duration = Duration::from_millis(1_500);

/// How long the others are waited for when it is decided, times what it took until then: they are mostly a
/// little slower, and what they know makes the answer a better one. Those that did not answer when they were
/// asked last are not waited for: who asks may have less time than this.
const STRAGGLER_TIMES: u32 = 4;

/// At least, and at most. For no longer are those waited for that did not answer when they were asked last,
/// where they decide.
const STRAGGLER_TIME: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_millis(300);

/// One server of a quorum.
pub(super) struct Member {
    pub(super) site: Arc<Site>,
    /// It did not answer when it was asked last.
    silent: AtomicBool,
}

/// What the answers that came mean for those that did not yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// They may change what it comes to.
    Open,
    /// They cannot, but what they know makes the answer a better one: they are waited for a little.
    Decided,
    /// Nor does the answer want anything of theirs.
    Complete,
}

impl Progress {
    pub(super) fn decided_if(is_decided: bool) -> Self {
        match is_decided {
            true => Self::Decided,
            false => Self::Open,
        }
    }

    /// Where a majority has done what was asked, or else.
    pub(super) fn complete_if(is_complete: bool, otherwise: Self) -> Self {
        match is_complete {
            true => Self::Complete,
            false => otherwise,
        }
    }
}

/// Those that may still answer.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) all: usize,
    /// Of these, those that answered when they were asked last.
    pub(super) lively: usize,
}

/// The answers of those that answered in time, by their places.
pub(super) struct Poll<T> {
    pub(super) answers: Vec<(usize, T)>,
    pub(super) errors: Vec<StoreError>,
    /// How many were not waited for. What was asked of them may still be carried out.
    pub(super) late: usize,
    /// Those that have carried out, or still may, what they did not say.
    pub(super) unheard: BTreeSet<usize>,
}

/// An answer that is waited for. The engine, whose patience is shorter than any time-out here, gives up by
/// dropping it: that too is a member that did not answer.
struct Hearing<'a> {
    member: &'a Member,
    silent: bool,
}

impl Drop for Hearing<'_> {
    fn drop(&mut self) {
        self.member.silent.store(self.silent, Ordering::Relaxed);
    }
}

impl Member {
    pub(super) fn new(url: StoreUrl, admission: Admission) -> Arc<Self> {
        Arc::new(Self {
            site: Arc::new(Site::of_quorum(url, admission)),
            silent: AtomicBool::new(false),
        })
    }

    /// Its host, for people.
    pub(super) fn host(&self) -> &str {
        self.site.place.split(' ').next().unwrap_or_default()
    }

    pub(super) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// It did not answer in this time.
    fn is_late(&self, deed: Deed, allowed: Duration) -> StoreError {
        timed_out(deed, "a member", &self.site.place, allowed)
    }

    /// Waits for an answer of this member for as long as one member is waited for.
    pub(super) async fn in_time<T>(
        &self,
        deed: Deed,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.within(deed, MEMBER_TIME_MAX, asking).await
    }

    /// Waits for an answer of this member, and remembers whether one came.
    pub(super) async fn within<T>(
        &self,
        deed: Deed,
        time_max: Duration,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut hearing = Hearing {
            member: self,
            silent: true,
        };
        let late = |_| Err(self.is_late(deed, time_max));
        let answer = tokio::time::timeout(time_max.min(MEMBER_TIME_MAX), asking)
            .await
            .unwrap_or_else(late);
        hearing.silent = answer
            .as_ref()
            .is_err_and(|error| !error.fault.is_misconfiguration());
        answer
    }
}

/// Where a majority has taken this long to decide.
fn straggler_time(decision: Duration) -> Duration {
    (decision * STRAGGLER_TIMES).clamp(*STRAGGLER_TIME.start(), *STRAGGLER_TIME.end())
}

/// Whether a member may have carried it out all the same.
pub(super) fn is_in_doubt<T>(answer: &Result<T, StoreError>) -> bool {
    answer
        .as_ref()
        .is_err_and(|error| error.certainty == Certainty::Unknown)
}

impl Quorum {
    /// Asks these members at once. Waits until all have answered, or there is enough `progress` by the
    /// answers that came and those that may still come, and the rest is late. Where only those
    /// would decide that were silent when they were asked last, they have failed again a little later: they
    /// are asked anew each time, and whoever asks is to hear in its own time what the others know.
    ///
    /// Who is late is not stopped: what was sent is carried out, and what comes after it is too.
    pub(super) async fn ask<T, Asking>(
        &self,
        places: impl IntoIterator<Item = usize>,
        deed: Deed,
        ask: impl Fn(Arc<Site>) -> Asking,
        progress: impl Fn(&[(usize, T)], Waiting) -> Progress,
    ) -> Poll<T>
    where
        T: Send + 'static,
        Asking: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let mut asked = JoinSet::new();
        let (mut lively, mut waiting, mut unheard) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for place in places {
            waiting.insert(place);
            unheard.insert(place);
            let member = Arc::clone(&self.members[place]);
            if !member.is_silent() {
                lively.insert(place);
            }
            let asking = ask(Arc::clone(&member.site));
            asked.spawn(async move { (place, member.in_time(deed, asking).await) });
        }
        let mut poll = Poll {
            answers: Vec::new(),
            errors: Vec::new(),
            late: 0,
            unheard: BTreeSet::new(),
        };
        let began = Instant::now();
        let (mut until, mut is_decided) = (None, false);
        while !asked.is_empty() {
            let still = Waiting {
                all: asked.len(),
                lively: lively.len(),
            };
            match progress(&poll.answers, still) {
                Progress::Open => {}
                Progress::Decided => {
                    is_decided = true;
                    until.get_or_insert_with(|| Instant::now() + straggler_time(began.elapsed()));
                }
                Progress::Complete => {
                    is_decided = true;
                    // Nobody has waited for them: whether they are silent is for the answers that come.
                    lively.clear();
                    break;
                }
            }
            let patience = match until {
                Some(_) if lively.is_empty() => break,
                None if lively.is_empty() => Some(began + *STRAGGLER_TIME.end()),
                until => until,
            };
            let next = match patience {
                None => asked.join_next().await,
                Some(until) => match tokio::time::timeout_at(until, asked.join_next()).await {
                    Ok(next) => next,
                    Err(_late) => break,
                },
            };
            let Some(Ok((place, answer))) = next else {
                continue;
            };
            lively.remove(&place);
            waiting.remove(&place);
            if !is_in_doubt(&answer) {
                unheard.remove(&place);
            }
            match answer {
                Ok(answer) => poll.answers.push((place, answer)),
                Err(error) => poll.errors.push(error),
            }
        }
        if !is_decided {
            let silent = |place: &usize| self.members[*place].is_late(deed, *STRAGGLER_TIME.end());
            poll.errors.extend(waiting.iter().map(silent));
        }
        poll.late = asked.len();
        poll.unheard = unheard;
        asked.detach_all();
        for place in lively {
            self.members[place].silent.store(true, Ordering::Relaxed);
        }
        poll.answers.sort_by_key(|(place, _)| *place);
        poll
    }

    /// Whether those that wait can change nothing any more: a majority agrees, so many differ that none can,
    /// or neither can come.
    pub(super) fn is_settled(&self, agreeing: usize, differing: usize, waiting: Waiting) -> bool {
        let waiting = waiting.all;
        agreeing >= self.majority()
            || self.blocks(differing)
            || (agreeing + waiting < self.majority() && !self.blocks(differing + waiting))
    }

    /// Asks all members for what each knows alone: a majority of answers is enough.
    pub(super) async fn ask_majority<T, Asking>(
        &self,
        deed: Deed,
        ask: impl Fn(Arc<Site>) -> Asking,
    ) -> Poll<T>
    where
        T: Send + 'static,
        Asking: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let is_enough = |answers: &[(usize, T)], _| Progress::decided_if(answers.len() >= self.majority());
        self.ask(0..self.members.len(), deed, ask, is_enough).await
    }
}

#[cfg(test)]
mod tests {
    use super::straggler_time;
    use std::time::Duration;

    #[test]
    fn the_others_are_waited_for_as_long_as_the_first_make_likely() {
        let waited =
            [1, 20, 1_000].map(|decision| straggler_time(Duration::from_millis(decision)).as_millis());
        assert_eq!(waited, [50, 80, 300]);
    }
}
