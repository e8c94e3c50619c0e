//! What the pages tell of this process.

use super::CONNECTIONS_MAX;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tenure::clock_now;
use tenure::contract::{Candidate, Fault, Lease, Moment};
use tenure::{Event, FencingToken, LeaseName, SharedStore, StoreError};
use tokio::sync::{Semaphore, watch};

/// How old an answer of the store may be when it is shown.
pub(super) const FRESH: Duration = Duration::from_secs(1);

/// How old it may be for the next who looks: so often at most is the store asked. What is left is for showing
/// it.
const SHARED: Duration = Duration::from_millis(800);

/// How long the store may take.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// How many may wait for the store at a time, of all connections: the others get a place for what needs no
/// store.
const WAITING_MAX: usize = CONNECTIONS_MAX / 4 * 3;

/// What is known of one lease and of this process's part in it.
pub(crate) struct Board {
    pub(super) name: LeaseName,
    opened: OnceLock<(Candidate, SharedStore)>,
    terms: Mutex<Terms>,
    works: watch::Sender<bool>,
    looked: Mutex<Option<Look>>,
    /// One asks the store at a time.
    asking: tokio::sync::Mutex<()>,
    waiting: Semaphore,
}

/// What is known of this process's terms.
#[derive(Default)]
struct Terms {
    current: Option<(FencingToken, Moment)>,
    ended: Option<FencingToken>,
}

impl Terms {
    /// Nothing older takes back what is known of a term, nor its end.
    fn extend(&mut self, token: FencingToken, until: Moment) {
        if Some(token) > self.ended {
            self.current = self.current.max(Some((token, until)));
        }
    }

    fn end(&mut self, token: FencingToken) {
        self.ended = self.ended.max(Some(token));
        self.current.take_if(|(of, _)| *of <= token);
    }
}

/// What is left of the work when its term is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    Nothing,
    /// What cannot be killed.
    Some,
}

/// What the store said of the lease, when it was asked, and when that was known.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) asked_at: Moment,
    pub(super) answered_at: Moment,
    pub(super) found: Result<Option<Lease>, StoreError>,
}

/// Whether this process does what it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Health {
    /// It leads, and has so long left.
    Leads(FencingToken, Duration),
    /// It does not lead, and nothing of it works.
    Idle,
    /// It leads no more, and its command still runs.
    WorksWithoutTerm,
}

impl Board {
    /// Of a process that waits for its store.
    pub(crate) fn new(name: LeaseName) -> Self {
        Self {
            name,
            opened: OnceLock::new(),
            terms: Mutex::default(),
            works: watch::Sender::new(false),
            looked: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    /// The store is open, and this candidate takes part there.
    pub(crate) fn opened(&self, candidate: Candidate, store: SharedStore) {
        // Once: no process is two candidates.
        let _ = self.opened.set((candidate, store));
    }

    /// This process, once it takes part.
    pub(super) fn candidate(&self) -> Option<&Candidate> {
        self.opened.get().map(|(candidate, _)| candidate)
    }

    /// The work of this term begins. Its events may be taken in later, as by another thread.
    pub(crate) fn begins(&self, token: FencingToken, until: Moment) {
        let mut terms = self.terms();
        terms.extend(token, until);
        // Before anybody else may look: nothing works without its term.
        self.works.send_replace(true);
    }

    /// The work of a term is over: it is gone, or goes on without one.
    pub(crate) fn ends(&self, left: Left) {
        let _terms = self.terms();
        self.works.send_replace(left == Left::Some);
    }

    /// The lease that this is about.
    pub(crate) fn lease(&self) -> &str {
        self.name.as_str()
    }

    /// Returns when this process does the work of a term; at once, if it does.
    pub(crate) async fn until_works(&self) {
        // It never closes: its other end is here.
        let _ = self.works.subscribe().wait_for(|works| *works).await;
    }

    pub(super) fn take_in(&self, event: &Event) {
        match event {
            Event::Acquired { grant, until, .. } => self.terms().extend(grant.token, *until),
            Event::Renewed { token, until, .. } => self.terms().extend(*token, *until),
            Event::Ended { token, .. } => self.terms().end(*token),
            _ => {}
        }
    }

    fn terms(&self) -> MutexGuard<'_, Terms> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn health(&self) -> Health {
        let now = clock_now();
        // Held while it is found out whether anything works: both change together.
        let terms = self.terms();
        match terms.current {
            Some((token, until)) if now < until => Health::Leads(token, until.since(now)),
            _ if *self.works.borrow() => Health::WorksWithoutTerm,
            _ => Health::Idle,
        }
    }

    /// Whether this lease is held by this process, in this term.
    pub(super) fn is_own(&self, lease: &Lease, term: FencingToken) -> bool {
        let own = self.candidate().map(|own| own.incarnation);
        lease.token == term && Some(lease.holder.incarnation) == own
    }

    /// Who leads, as the store says. It may take longer to say it than an answer is [`FRESH`].
    pub(super) async fn look(&self) -> Look {
        let came_at = clock_now();
        let Some((_, store)) = self.opened.get() else {
            return self.failed(came_at, Fault::Unreachable, "the store has not answered yet");
        };
        if let Some(look) = self.known_to(came_at) {
            return look;
        }
        let Ok(_place) = self.waiting.try_acquire() else {
            return self.failed(
                came_at,
                Fault::Busy,
                "too many wait for the store; ask again later",
            );
        };
        // One asks, and who comes meanwhile gets the same answer, however long it took: where the store
        // hangs, nobody waits for more than one time-out.
        let _asking = self.asking.lock().await;
        if let Some(look) = self.known_to(came_at) {
            return look;
        }
        let asked_at = clock_now();
        let look = match tokio::time::timeout(LOOK_TIME_MAX, store.get(&self.name)).await {
            Ok(found) => Look {
                asked_at,
                answered_at: clock_now(),
                found,
            },
            Err(_late) => {
                let why = format!("the store did not answer within {LOOK_TIME_MAX:?}");
                self.failed(asked_at, Fault::TimedOut, &why)
            }
        };
        *self.looked() = Some(look.clone());
        look
    }

    /// An answer for who came at this moment: one that is young enough, or was waited for.
    fn known_to(&self, came_at: Moment) -> Option<Look> {
        let looked = self.looked();
        let serves = |look: &&Look| look.answered_at >= came_at || came_at.since(look.asked_at) < SHARED;
        looked.as_ref().filter(serves).cloned()
    }

    fn failed(&self, asked_at: Moment, fault: Fault, why: &str) -> Look {
        let message = format!("lease \"{}\": {why}", self.name);
        Look {
            asked_at,
            answered_at: clock_now(),
            found: Err(StoreError::not_applied(fault, message)),
        }
    }

    fn looked(&self) -> MutexGuard<'_, Option<Look>> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An election of a test's own, and the board of its candidate.
#[cfg(all(test, feature = "sqlite"))]
pub(super) struct Alone {
    _folder: tenure_testkit::ScratchDir,
    pub(super) store: SharedStore,
    pub(super) election: tenure::Election,
    pub(super) board: Board,
}

#[cfg(all(test, feature = "sqlite"))]
impl Alone {
    /// `label` is a part of the name of its store's folder.
    pub(super) async fn new(label: &str) -> Self {
        let folder = tenure_testkit::ScratchDir::new(label);
        let url = format!("sqlite:{}", folder.join("leases.db").display());
        let store = tenure::Registry::connect(&url).await.expect("a store");
        let election = tenure::Election::builder("job", store.clone())
            .build()
            .expect("an election");
        let board = Board::new(election.name().clone());
        board.opened(election.candidate().clone(), store.clone());
        Self {
            _folder: folder,
            board,
            store,
            election,
        }
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_begins_is_in_its_term_whatever_was_told_of_terms_by_then() {
        let Alone { election, board, .. } = &Alone::new("board").await;
        let mut events = election.events();
        let leadership = election.campaign().await.unwrap();
        let first = leadership.token();
        board.begins(first, leadership.until());
        assert!(matches!(board.health(), Health::Leads(token, _) if token == first));
        board.ends(Left::Nothing);
        leadership.step_down().await;
        let leadership = election.campaign().await.unwrap();
        let (second, until) = (leadership.token(), leadership.until());
        board.begins(second, until);
        // Late news of the first term, its end among them.
        let mut ends = 0;
        while let Ok(event) = events.try_recv() {
            board.take_in(&event);
            ends += u32::from(matches!(event, Event::Ended { .. }));
            assert!(
                matches!(board.health(), Health::Leads(token, _) if token == second),
                "{event:?}"
            );
        }
        assert_eq!(ends, 1);
        // What cannot be killed works on.
        board.ends(Left::Some);
        leadership.step_down().await;
        while let Ok(event) = events.try_recv() {
            board.take_in(&event);
        }
        assert_eq!(board.health(), Health::WorksWithoutTerm);
        board.begins(second, until);
        assert_eq!(board.health(), Health::WorksWithoutTerm, "it has ended");
        board.ends(Left::Nothing);
        assert_eq!(board.health(), Health::Idle);
    }
}
