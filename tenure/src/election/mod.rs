//! Campaigning for a lease, and leading.

mod announce;
mod builder;
mod leadership;
mod observer;

pub use builder::{BuildError, ElectionBuilder};
pub use leadership::Leadership;
pub use observer::{Observation, Observer};

use crate::driver::{Campaign, Conditions, DriverHandle, Message, NotWon, Queueing, Won};
use crate::registry::SharedStore;
use crate::sync::{AtomicBool, Ordering, blocking, broadcast, select, sleep, timeout};
use crate::term::Phase;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Candidate, Event, Lease, LeaseName, StoreError, Timing};

/// A candidacy for one lease: campaigns on demand, on a thread that no user code blocks.
///
/// One campaign or term at a time. Dropping it withdraws and waits, at most for one request time-out and at
/// most [`PATIENCE_AT_DROP`], until what was held has been given back; [`close`](Self::close) does so without
/// blocking. A [`Leadership`] may outlive it: that is waited for for 50 ms, in which a task that was just
/// aborted lets go of its own, and is renewed until it ends. Await what you have aborted before you drop this
/// at the end of a process.
pub struct Election {
    plan: About,
    driver: DriverHandle,
    events: broadcast::Sender<Event>,
    /// Whether it was told to leave already: then dropping it waits for nothing.
    closed: AtomicBool,
}

/// What a candidacy is about.
struct About {
    name: LeaseName,
    candidate: Candidate,
    timing: Timing,
    store: SharedStore,
}

/// Longest time for which dropping an [`Election`] blocks.
pub const PATIENCE_AT_DROP: Duration = Duration::from_secs(1);

/// Why a campaign ended without a term. Nothing is held.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CampaignError {
    /// This election campaigns for this lease or leads already; effect on authority: none.
    Busy(LeaseName),
    /// Somebody else leads, in answer to [`try_campaign`](Election::try_campaign) alone. (Boxed: most errors
    /// are smaller.)
    Held(Box<Lease>),
    /// An operator must act first: privileges, a store that takes no writes, a set-up that will not do. No
    /// other failure of the store ends a campaign, neither [a refused login](tenure_core::Fault::is_final)
    /// nor a record that cannot be read: who waits for the end, to be started anew with another password,
    /// waits for ever. [`try_campaign`](Election::try_campaign) ends with any failure. Effect on authority:
    /// none.
    Store(StoreError),
    /// The election was closed, or its thread is gone; effect on authority: gone with it, at the deadline at
    /// the latest.
    Stopped(LeaseName),
}

impl fmt::Display for CampaignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(name) => write!(
                f,
                "lease \"{name}\": this election campaigns or leads already; build a second one"
            ),
            Self::Held(lease) => write!(
                f,
                "lease \"{}\": {} leads, with token {}, for {:.1?} more if it is not renewed; campaign to wait for it",
                lease.name, lease.holder, lease.token, lease.remaining
            ),
            Self::Store(error) => error.fmt(f),
            Self::Stopped(name) => write!(f, "lease \"{name}\": the election has stopped; build a new one"),
        }
    }
}

impl std::error::Error for CampaignError {}

impl Election {
    /// Begins to describe a candidacy for the lease `name` in `store`.
    pub fn builder(name: impl AsRef<str>, store: SharedStore) -> ElectionBuilder {
        ElectionBuilder::new(name.as_ref(), store)
    }

    /// Campaigns until this process leads.
    ///
    /// Waits as long as it takes: a failing store does not end it. Dropping the future withdraws, and what an
    /// attempt may have taken unnoticed is found and released. A future that is kept but not polled leads for
    /// one ttl at most: then the lease is given back, and when it is polled again, it campaigns anew.
    ///
    /// # Errors
    /// [`CampaignError`].
    pub async fn campaign(&self) -> Result<Leadership, CampaignError> {
        loop {
            if let Some(won) = self.campaign_by(Queueing::Alone).await? {
                return Ok(Leadership::new(won));
            }
        }
    }

    /// Leads if nobody does, by one attempt: for a job that is done elsewhere if it is not done here.
    ///
    /// Waits for one answer of the store's, and at most for its request time-out; where this election has
    /// just left a term whose release was not answered yet, first for that, as long again at most. Dropping
    /// the future is as with [`campaign`](Self::campaign).
    ///
    /// # Errors
    /// [`CampaignError::Held`]: somebody else leads. [`CampaignError::Store`] also where the store could not
    /// be asked: who leads is not known. The others as they say.
    pub async fn try_campaign(&self) -> Result<Leadership, CampaignError> {
        loop {
            if let Some(won) = self.campaign_by(Queueing::OneLook).await? {
                return Ok(Leadership::new(won));
            }
        }
    }

    /// `None` if what was won was not taken up in time.
    async fn campaign_by(&self, queueing: Queueing) -> Result<Option<Won>, CampaignError> {
        let (driver, name) = (&self.driver, &self.plan.name);
        let campaign = Campaign::begin(driver, DriverHandle::tell, name, Conditions::of(queueing));
        let outcome = match campaign {
            Ok(campaign) => campaign.outcome().await,
            Err(why) => Err(why),
        };
        outcome.map_err(|why| match why {
            NotWon::Store(error) => CampaignError::Store(error),
            NotWon::Busy(_) => CampaignError::Busy(name.clone()),
            NotWon::Held(lease) => CampaignError::Held(lease),
            NotWon::Stopped => CampaignError::Stopped(name.clone()),
            NotWon::OtherApplication(_) => unreachable!("an election has no owner tag"),
        })
    }

    /// Campaigns, and runs `work` while this process leads, until `work` has ended by itself: with whatever
    /// it answers, also an error.
    ///
    /// A candidate that is to stand by again after one calls this in a loop, with a pause that grows with
    /// each failure: a term is several writes in the store, and a copy whose work fails at once would begin
    /// dozens in a second. `tenure run --restart always` pauses so, too:
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use tenure::{CampaignError, Election, Term};
    /// # async fn consume(term: Term) -> Result<(), std::io::Error> { Ok(()) }
    /// # async fn for_ever(election: Election) -> Result<(), CampaignError> {
    /// let first = Duration::from_secs(5);
    /// let mut pause = first;
    /// loop {
    ///     let outcome = election.run(|leadership| consume(leadership.term())).await?;
    ///     tokio::time::sleep(pause).await; // the lease is given back: another copy may lead meanwhile
    ///     pause = if outcome.is_ok() { first } else { (2 * pause).min(64 * first) };
    /// }
    /// # }
    /// ```
    ///
    /// When the term is lost, or its holder is asked to step down, the future of `work` is dropped, and a new
    /// campaign begins: no step of it begins once authority is none. What it has spawned (`tokio::spawn`,
    /// `spawn_blocking`, a thread) goes on, unless it is ended when `work` is dropped. After having been
    /// asked to step down, the campaign begins only after one renewal interval, so that another candidate
    /// gets its turn. The lease is released when `work` has ended or was dropped, and the last clone of its
    /// [`Leadership`] is gone: a task that keeps one keeps the lease, and this waits for it, unless
    /// [`progress_within`](ElectionBuilder::progress_within) bounds that.
    ///
    /// Dropping this future, as at the end of a process, drops `work` and gives the lease back in the
    /// background: [`close`](Self::close) waits for that.
    ///
    /// # Errors
    /// [`CampaignError`].
    pub async fn run<Work, Running, T>(&self, mut work: Work) -> Result<T, CampaignError>
    where
        Work: FnMut(Arc<Leadership>) -> Running,
        Running: Future<Output = T>,
    {
        loop {
            let leadership = Arc::new(self.campaign().await?);
            let mut phase = leadership.phases();
            let running = work(leadership.clone());
            let outcome = select! {
                biased;
                () = leadership.interrupted() => None,
                outcome = leadership.while_held(running) => outcome,
            };
            let asked = leadership.is_ending();
            if let Some(leadership) = Arc::into_inner(leadership) {
                let _ = leadership.step_down().await;
            }
            // Somebody may still hold a clone: the term lasts until the last of them is gone, and only then
            // may this election campaign again.
            let _ = phase.wait_for(|phase| matches!(phase, Phase::Over(_))).await;
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
            if asked {
                sleep(self.plan.timing.renew_every()).await;
            }
        }
    }

    /// Observes who leads, as a stream, whether or not this process campaigns.
    #[must_use]
    pub fn observe(&self) -> Observer {
        Observer::new(self.plan.store.clone(), self.plan.name.clone(), &self.plan.timing)
    }

    /// Subscribes to everything that happens in this candidacy. Of more than 256 events that wait, the
    /// oldest are missed, and the receiver is told.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Where its records are, and who drives it: what its history needs.
    pub(crate) fn driven(&self) -> (SharedStore, DriverHandle) {
        (self.plan.store.clone(), self.driver.clone())
    }

    /// The lease.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.plan.name
    }

    /// This candidate.
    #[must_use]
    pub fn candidate(&self) -> &Candidate {
        &self.plan.candidate
    }

    /// The timing.
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.plan.timing
    }

    /// Withdraws, and waits until nothing is held any more.
    ///
    /// A term whose [`Leadership`] still lives goes on; it is not waited for longer than one ttl. Dropping
    /// the future stops the wait, nothing else. Whoever campaigns after that is told that the election has
    /// stopped; whoever listens to its [events](Self::events) hears the end of them when it is dropped.
    pub async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let limit = self.plan.timing.ttl().duration();
        if self.driver.tell(Message::Close { closed: None }).is_ok() {
            let _ = timeout(limit, self.driver.gone()).await;
        }
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        if *self.closed.get_mut() {
            return;
        }
        let (closed, gone) = blocking::channel();
        let close = Message::Close { closed: Some(closed) };
        if self.driver.tell(close).is_ok() {
            let _ = gone.recv_timeout(self.plan.timing.request_timeout().min(PATIENCE_AT_DROP));
        }
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("name", &self.plan.name)
            .field("candidate", &self.plan.candidate)
            .finish_non_exhaustive()
    }
}
