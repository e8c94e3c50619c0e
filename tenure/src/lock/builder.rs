use super::acquire::Shared;
use super::announce::announce;
use super::announce_place;
use super::line::Lines;
use super::standby::{check_room_for_place, places_end};
use super::{Fairness, LockManager, LockTiming, OwnerTag, Reentrancy};
use crate::driver::{self, EVENTS_KEPT, Meter, Permits, Places, Plan, Watching};
use crate::election::BuildError;
use crate::identity;
use crate::registry::SharedStore;
use crate::sync::{broadcast, watch};
use std::fmt;
use std::time::Duration;
use tenure_core::{CandidateId, NameError, Note, NoteTooLong, Priority};

/// Locks that a manager holds or waits for at most, unless it is told otherwise.
pub const LOCKS_MAX: u64 = 100_000;

/// The shortest [`max_hold`](LockManagerBuilder::max_hold), as the shortest ttl: a winner whose lock is over
/// before it wakes up takes it anew, and would do so for ever.
pub const MAX_HOLD_MIN: Duration = Duration::from_millis(100);

/// What a [`LockManager`] is to be.
#[must_use = "a builder does nothing until build() is called"]
pub struct LockManagerBuilder {
    store: SharedStore,
    candidate: Option<Result<CandidateId, NameError>>,
    tag: Option<Result<OwnerTag, NameError>>,
    timing: LockTiming,
    note: Result<Note, NoteTooLong>,
    max_hold: Option<Duration>,
    reentrancy: Reentrancy,
    fairness: Fairness,
    priority: Priority,
    locks_max: u64,
    meter: fn() -> Meter,
}

impl fmt::Debug for LockManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManagerBuilder")
            .field("candidate", &self.candidate)
            .field("tag", &self.tag)
            .field("timing", &self.timing)
            .field("note", &self.note)
            .field("max_hold", &self.max_hold)
            .field("reentrancy", &self.reentrancy)
            .field("fairness", &self.fairness)
            .field("priority", &self.priority)
            .field("locks_max", &self.locks_max)
            .finish_non_exhaustive()
    }
}

impl LockManagerBuilder {
    pub(super) fn new(store: SharedStore) -> Self {
        Self {
            store,
            candidate: None,
            tag: None,
            timing: LockTiming::default(),
            note: Ok(Note::default()),
            max_hold: None,
            reentrancy: Reentrancy::default(),
            fairness: Fairness::default(),
            priority: Priority::default(),
            locks_max: LOCKS_MAX,
            meter: Meter::of_locks,
        }
    }

    /// The label of this process in the records, for people. Default: host name and process id.
    ///
    /// It may be shared by mistake: what owns a lock is the incarnation, drawn anew by every build.
    pub fn candidate(mut self, id: impl AsRef<str>) -> Self {
        self.candidate = Some(CandidateId::new(id));
        self
    }

    /// Which application the locks are of: a record that another application holds, or held last, is refused
    /// with [`LockError::OtherApplication`](super::LockError::OtherApplication). Default: none, and any
    /// record is taken.
    ///
    /// What stands in the record counts, so it is read before each attempt of somebody who waits behind
    /// nobody of this manager: one more request. Managers without a tag take any record, and it is theirs
    /// from then on.
    pub fn owner_tag(mut self, tag: impl AsRef<str>) -> Self {
        self.tag = Some(OwnerTag::new(tag));
        self
    }

    /// The timing. Default: 30 s, extended every 10 s, of which the holder trusts 27 s.
    pub fn timing(mut self, timing: LockTiming) -> Self {
        self.timing = timing;
        self
    }

    /// What to note in the records for the people who look. Default: nothing. At most 1,024 bytes, no
    /// secrets.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = Note::new(text);
        self
    }

    /// The longest that a lock is held: it ends then and is not extended past it, so that a deadlocked owner
    /// does not keep it for ever. The store lends it to another at most one ttl later. At least
    /// [`MAX_HOLD_MIN`]. Default: no such bound.
    pub fn max_hold(mut self, duration: Duration) -> Self {
        self.max_hold = Some(duration);
        self
    }

    /// What happens when an [owner](LockManager::owner) takes a lock that it has. Default: it is refused.
    pub fn reentrancy(mut self, reentrancy: Reentrancy) -> Self {
        self.reentrancy = reentrancy;
        self
    }

    /// Who gets a lock next. Default: [`Fairness::Barging`].
    ///
    /// With [`Fairness::Fair`] the id of this [candidate](Self::candidate) is its place in the queues: no two
    /// managers that live at once may share it, not in one process either, or the second waits until the
    /// first has no place, and warns of that in the log. That place has a name of 255 bytes at most, too: the
    /// lock's, `/candidates/`, the priority and the id.
    pub fn fairness(mut self, fairness: Fairness) -> Self {
        self.fairness = fairness;
        self
    }

    /// How much this process is wanted in the queues of fair locks and of [turns](LockManager::turn): whoever
    /// has the highest priority goes first, and with [`Priority::NEVER`] this process never gets a turn, not
    /// by [`try_lock`](LockManager::try_lock) either. Default: 1.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// How many locks may be held or waited for at once; one more is refused. Default: [`LOCKS_MAX`].
    pub fn locks_max(mut self, locks: u64) -> Self {
        self.locks_max = locks;
        self
    }

    /// Tells no metrics: for places in a queue before something that tells its own. Default: they are told
    /// under the label `*`.
    pub fn without_metrics(mut self) -> Self {
        self.meter = Meter::of_nothing;
        self
    }

    /// Starts the manager's thread, where the store has none. It does nothing until a lock is asked for.
    ///
    /// # Errors
    /// [`BuildError`]. Nothing was started.
    pub fn build(self) -> Result<LockManager, BuildError> {
        let id = self.candidate.transpose().map_err(BuildError::Name)?;
        let id = id.unwrap_or_else(identity::default_candidate_id);
        let tag = self.tag.transpose().map_err(BuildError::Name)?;
        let id = tag.as_ref().map_or(Ok(id.clone()), |tag| tag.mark(&id));
        let candidate = identity::candidate(id.map_err(BuildError::Name)?);
        if self.fairness == Fairness::Fair {
            check_room_for_place(self.priority, &candidate.id).map_err(BuildError::Name)?;
        }
        let note = self.note.map_err(BuildError::Note)?;
        if let Some(max_hold) = self.max_hold.filter(|max_hold| *max_hold < MAX_HOLD_MIN) {
            return Err(BuildError::MaxHold(max_hold));
        }
        let lock_timing = match self.fairness {
            Fairness::Barging => self.timing,
            Fairness::Fair => self.timing.of_one_in_turn(),
        };
        let timing = *lock_timing.lease();
        timing.fits(&self.store.traits()).map_err(BuildError::Timing)?;
        let events = broadcast::Sender::new(EVENTS_KEPT);
        let plan = Plan {
            label: "locks".to_owned(),
            store: self.store.clone(),
            candidate: candidate.clone(),
            timing,
            note,
            progress_within: None,
            watching: Watching::Waits(lock_timing.back_off()),
            stands_back: self.fairness == Fairness::Barging,
            tag,
            announce,
            meter: (self.meter)(),
            places: Some(Places {
                end: places_end(self.priority, &candidate.id),
                announce: announce_place,
            }),
            seed: u64::try_from(identity::random_bits() & u128::from(u64::MAX)).expect("64 bits"),
            recorder: None,
        };
        let driver = driver::start(plan, events.clone()).map_err(BuildError::Thread)?;
        Ok(LockManager::new(Shared {
            store: self.store,
            driver,
            closing: watch::Sender::new(false),
            permits: Permits::new(self.locks_max),
            candidate,
            timing: lock_timing,
            reentrancy: self.reentrancy,
            fairness: self.fairness,
            priority: self.priority,
            max_hold: self.max_hold,
            lines: Lines::default(),
            events,
        }))
    }
}
