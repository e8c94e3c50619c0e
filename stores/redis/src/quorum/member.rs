//! One server of a quorum, and asking all of them at once.

use super::Quorum;
use crate::fault::Deed;
use crate::fault::timed_out;
use crate::site::Site;
use crate::url::StoreUrl;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::StoreError;
use tokio::task::JoinSet;

/// How long one member is waited for.
const MEMBER_TIME_MAX: Duration = Duration::from_millis(1_500);

/// How long the others are waited for when enough have answered: they are mostly a little slower, and what they know
/// makes the decision a better one.
const STRAGGLER_TIME_MAX: Duration = Duration::from_millis(50);

/// One server of a quorum.
pub(super) struct Member {
    pub(super) site: Arc<Site>,
    /// It did not answer when it was asked last.
    silent: AtomicBool,
}

/// The answers of those that answered in time, by their places.
pub(super) struct Poll<T> {
    pub(super) answers: Vec<(usize, T)>,
    pub(super) errors: Vec<StoreError>,
}

impl Member {
    pub(super) fn new(url: StoreUrl) -> Arc<Self> {
        Arc::new(Self {
            site: Arc::new(Site::new(url)),
            silent: AtomicBool::new(false),
        })
    }

    pub(super) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// Waits for an answer of this member, and remembers whether one came.
    pub(super) async fn within<T>(
        &self,
        deed: Deed,
        time_max: Duration,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let late = |_| Err(timed_out(deed, "a member", &self.site.place, time_max));
        let answer = tokio::time::timeout(time_max.min(MEMBER_TIME_MAX), asking)
            .await
            .unwrap_or_else(late);
        let unheard = answer
            .as_ref()
            .is_err_and(|error| !error.fault.is_misconfiguration());
        self.silent.store(unheard, Ordering::Relaxed);
        answer
    }
}

impl Quorum {
    /// Asks these members at once. Waits until all have answered, or `enough` are content and the rest is late.
    ///
    /// Who is late is not stopped: what was sent is carried out, and what comes after it is too.
    pub(super) async fn ask<T, Asking>(
        &self,
        places: impl IntoIterator<Item = usize>,
        deed: Deed,
        ask: impl Fn(Arc<Site>) -> Asking,
    ) -> Poll<T>
    where
        T: Send + 'static,
        Asking: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let mut asked = JoinSet::new();
        for place in places {
            let member = Arc::clone(&self.members[place]);
            let asking = ask(Arc::clone(&member.site));
            asked.spawn(async move { (place, member.within(deed, MEMBER_TIME_MAX, asking).await) });
        }
        let mut poll = Poll {
            answers: Vec::new(),
            errors: Vec::new(),
        };
        let mut decided_at = None;
        loop {
            let next = match decided_at {
                None => asked.join_next().await,
                Some(at) => match tokio::time::timeout_at(at, asked.join_next()).await {
                    Ok(next) => next,
                    Err(_late) => {
                        asked.detach_all();
                        break;
                    }
                },
            };
            match next {
                Some(Ok((place, Ok(answer)))) => poll.answers.push((place, answer)),
                Some(Ok((_, Err(error)))) => poll.errors.push(error),
                Some(Err(_panicked)) => {}
                None => break,
            }
            if decided_at.is_none() && poll.answers.len() >= self.majority() {
                decided_at = Some(tokio::time::Instant::now() + STRAGGLER_TIME_MAX);
            }
        }
        poll.answers.sort_by_key(|(place, _)| *place);
        poll
    }

    /// The same of all members.
    pub(super) async fn ask_all<T, Asking>(&self, deed: Deed, ask: impl Fn(Arc<Site>) -> Asking) -> Poll<T>
    where
        T: Send + 'static,
        Asking: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.ask(0..self.members.len(), deed, ask).await
    }
}
