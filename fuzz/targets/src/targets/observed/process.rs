use std::fmt::Debug;
use tenure_core::{
    Acquire, Acquired, Ask, Asked, Attempt, CONFLICTS_MAX, Candidate, Decide, Entry, FencingToken,
    Incarnation, Lease, LeaseName, Moment, Need, Release, Released, Renew, Renewed, Response, Revision,
    Round, Sightings, StoreError, Ttl,
};

/// One process: a clock that is wrong within ρ, what it has seen, what it believes, and its rounds.
pub(super) struct Process {
    pub(super) candidate: Candidate,
    /// How much its clock is too fast, in parts per million.
    pub(super) fast_ppm: i64,
    /// What its clock showed at the beginning, in nanoseconds.
    pub(super) offset: u64,
    /// What it always asks for, as an engine does.
    pub(super) ttl: Ttl,
    pub(super) sightings: Sightings,
    pub(super) last_attempt: u64,
    pub(super) belief: Option<Belief>,
    pub(super) rounds: Vec<Running>,
}

/// What a process believes by its own clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Belief {
    pub(super) token: FencingToken,
    pub(super) attempt: Attempt,
    pub(super) until: Moment,
}

/// A round under way.
pub(super) struct Running {
    /// When it began, by its process's clock: before anything was sent.
    pub(super) began: Moment,
    pub(super) attempt: Attempt,
    pub(super) work: Work,
    /// Responses so far.
    pub(super) turns: u32,
}

/// A round of any request.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Acquire(Round<Acquire>),
    Renew(Round<Renew>),
    Release(Round<Release>),
    Ask(Round<Ask>),
    Look(Round<LeaseName>),
}

/// The end of a round of any request.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Outcome {
    Acquired(Acquired),
    Renewed(Renewed),
    Released(Released),
    Asked(Asked),
    Looked(Option<Lease>),
    Failed(StoreError),
}

/// What a round needs of the store.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Wanted {
    Read,
    Write(Option<Revision>, Entry),
    Nothing(Outcome),
}

/// Most responses that a round may need: a reading and a write each time, and the first.
pub(super) const TURNS_MAX: u32 = 2 * (CONFLICTS_MAX + 2);

impl Process {
    /// Its clock, when so much true time has passed.
    pub(super) fn clock(&self, true_ns: u64) -> Moment {
        let drift = i128::from(true_ns) * i128::from(self.fast_ppm) / 1_000_000;
        let passed = u64::try_from(i128::from(true_ns) + drift).unwrap_or(0);
        Moment::from_nanos(self.offset.saturating_add(passed))
    }

    pub(super) fn incarnation(&self) -> Incarnation {
        self.candidate.incarnation
    }

    pub(super) fn believes(&self, true_ns: u64) -> Option<Belief> {
        self.belief.filter(|belief| self.clock(true_ns) < belief.until)
    }
}

impl Work {
    pub(super) fn wanted(&self) -> Wanted {
        match self {
            Self::Acquire(round) => wanted(round, Outcome::Acquired),
            Self::Renew(round) => wanted(round, Outcome::Renewed),
            Self::Release(round) => wanted(round, Outcome::Released),
            Self::Ask(round) => wanted(round, Outcome::Asked),
            Self::Look(round) => wanted(round, Outcome::Looked),
        }
    }

    pub(super) fn take_in(&mut self, now: Moment, response: Response, sightings: &mut Sightings) {
        match self {
            Self::Acquire(round) => round.take_in(now, response, sightings),
            Self::Renew(round) => round.take_in(now, response, sightings),
            Self::Release(round) => round.take_in(now, response, sightings),
            Self::Ask(round) => round.take_in(now, response, sightings),
            Self::Look(round) => round.take_in(now, response, sightings),
        }
    }
}

fn wanted<Request: Decide>(round: &Round<Request>, outcome: impl Fn(Request::Answered) -> Outcome) -> Wanted {
    match round.next() {
        Need::Read(_) => Wanted::Read,
        Need::Create(_, entry) => Wanted::Write(None, entry),
        Need::Swap(_, revision, entry) => Wanted::Write(Some(revision), entry),
        Need::Done(Ok(answered)) => Wanted::Nothing(outcome(answered)),
        Need::Done(Err(error)) => Wanted::Nothing(Outcome::Failed(error)),
    }
}
