use super::announce::announce;
use super::{About, Election};
use crate::driver::{self, EVENTS_KEPT, Meter, Plan, Recorder, Watching};
use crate::identity;
use crate::lock::MAX_HOLD_MIN;
use crate::registry::SharedStore;
use crate::sync::{AtomicBool, broadcast};
use std::fmt;
use std::io;
use std::time::Duration;
use tenure_core::{CandidateId, LeaseName, NameError, Note, NoteTooLong, Timing, TimingError};

/// What an [`Election`] is to be.
#[must_use = "a builder does nothing until build() is called"]
pub struct ElectionBuilder {
    name: Result<LeaseName, NameError>,
    store: SharedStore,
    candidate: Option<Result<CandidateId, NameError>>,
    timing: Timing,
    note: Result<Note, NoteTooLong>,
    progress_within: Option<Duration>,
    meter: fn(&LeaseName) -> Meter,
    pub(crate) recorder: Option<OpenRecorder>,
}

impl fmt::Debug for ElectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionBuilder")
            .field("name", &self.name)
            .field("candidate", &self.candidate)
            .field("timing", &self.timing)
            .field("note", &self.note)
            .field("progress_within", &self.progress_within)
            .finish_non_exhaustive()
    }
}

/// Opens a recorder for what is planned.
pub(crate) type OpenRecorder = Box<dyn FnOnce(&Plan) -> io::Result<Box<dyn Recorder>> + Send>;

/// Why an election or a lock manager was not built. Nothing was started.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The lease's name or the candidate's id.
    Name(NameError),
    /// The note.
    Note(NoteTooLong),
    /// The timing does not suit the store.
    Timing(TimingError),
    /// The longest hold of locks is shorter than [`MAX_HOLD_MIN`].
    MaxHold(Duration),
    /// The thread that renews could not be started.
    Thread(io::Error),
    /// The file of the trace could not be opened, or written.
    Trace(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Note(error) => error.fmt(f),
            Self::Timing(error) => error.fmt(f),
            Self::MaxHold(given) => write!(
                f,
                "max_hold {given:?} is below {MAX_HOLD_MIN:?}: a lock would be over before its winner wakes up"
            ),
            Self::Thread(error) => write!(f, "the thread that renews could not be started: {error}"),
            Self::Trace(error) => write!(f, "the trace could not be begun: {error}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread(error) | Self::Trace(error) => Some(error),
            // Told in full by themselves.
            Self::Name(_) | Self::Note(_) | Self::Timing(_) | Self::MaxHold(_) => None,
        }
    }
}

impl ElectionBuilder {
    pub(super) fn new(name: &str, store: SharedStore) -> Self {
        Self {
            name: LeaseName::new(name),
            store,
            candidate: None,
            timing: Timing::batch(),
            note: Ok(Note::default()),
            progress_within: None,
            meter: Meter::of_election,
            recorder: None,
        }
    }

    /// The label of this candidate, for people. Default: host name and process id.
    ///
    /// It may be shared by mistake: what owns a lease is the incarnation, drawn anew by every build.
    pub fn candidate(mut self, id: impl AsRef<str>) -> Self {
        self.candidate = Some(CandidateId::new(id));
        self
    }

    /// The timing. Default: [`Timing::batch`], 30 s renewed every 10 s.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// What to note in the record for the people who look. Default: nothing. At most 1,024 bytes, no secrets.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = Note::new(text);
        self
    }

    /// Stops renewals when [`Leadership::progress`](super::Leadership::progress) was not called for this
    /// long, so that a stuck worker does not lead for ever; the lease then ends within its ttl, if it is not
    /// given back before. Any duration: the first renewal is a renewal interval after the win, so that a
    /// shorter one ends each term, and zero lets none be renewed. Default: no such gate.
    pub fn progress_within(mut self, duration: Duration) -> Self {
        self.progress_within = Some(duration);
        self
    }

    /// Tells its metrics with those of all locks, under the label `*`: for one whose name is one of many, as
    /// of orders, each of which would leave series of its own. Default: under its name.
    pub fn metrics_with_all_locks(mut self) -> Self {
        self.meter = |_| Meter::of_locks();
        self
    }

    /// Starts the election's thread. It does nothing until it is asked to campaign.
    ///
    /// # Errors
    /// [`BuildError`]. Nothing was started.
    pub fn build(self) -> Result<Election, BuildError> {
        let name = self.name.map_err(BuildError::Name)?;
        let id = self.candidate.transpose().map_err(BuildError::Name)?;
        let candidate = identity::candidate(id.unwrap_or_else(identity::default_candidate_id));
        let note = self.note.map_err(BuildError::Note)?;
        let (store, timing) = (self.store, self.timing);
        timing.fits(&store.traits()).map_err(BuildError::Timing)?;
        let events = broadcast::Sender::new(EVENTS_KEPT);
        let mut plan = Plan {
            label: name.to_string(),
            store: store.clone(),
            candidate: candidate.clone(),
            timing,
            note,
            progress_within: self.progress_within,
            watching: Watching::OneLease,
            stands_back: false,
            tag: None,
            announce,
            meter: (self.meter)(&name),
            places: None,
            seed: u64::try_from(identity::random_bits() & u128::from(u64::MAX)).expect("64 bits"),
            recorder: None,
        };
        let recorder = self.recorder.map(|open| open(&plan)).transpose();
        plan.recorder = recorder.map_err(BuildError::Trace)?;
        let driver = driver::start(plan, events.clone()).map_err(BuildError::Thread)?;
        Ok(Election {
            plan: About {
                name,
                candidate,
                timing,
                store,
            },
            driver,
            events,
            closed: AtomicBool::new(false),
        })
    }
}
