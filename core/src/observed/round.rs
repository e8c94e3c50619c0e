use super::entry::{Entry, Revision, Version};
use super::sightings::Sightings;
use crate::{Acquire, Ask, Certainty, Fault, Lease, LeaseName, Moment, Release, Renew, StoreError, Ttl};
use std::fmt::Debug;
use std::hash::Hash;

/// Most times that one round reads again because somebody else wrote in between.
///
/// Each time means that another made progress, so a round rarely needs more than one, and thirty-two who
/// write at once all come through; after the last, it ends with [`Fault::Busy`], nothing written.
pub const CONFLICTS_MAX: u32 = 32;

/// What a read of one record showed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reading {
    /// The record, `None` where there is none.
    pub found: Option<Version>,
    /// What the store itself can say of time, as a floor for the next token: its clock in milliseconds, or a
    /// number of its own that only rises and outlives the record. 0 where it says nothing.
    ///
    /// Without it tokens rise for as long as the record lives, by counting. After the record was removed they
    /// begin with 1 again: **no fence protects then**. A store without a floor must never remove a record.
    pub token_floor: u64,
}

/// Whether the token floor of a reading will be looked at.
///
/// Only a new term has a new token. A store whose clock costs a request of its own need not ask it for a
/// renewal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Floor {
    /// A token may be chosen above it.
    Wanted,
    /// Nobody will look at it.
    Unwanted,
}

/// What a create or a swap did.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Written {
    /// It was written; the record has this revision now.
    As(Revision),
    /// Nothing was written, and never will be: the record was there already, or has another revision, or is
    /// gone.
    Conflict,
}

/// What the store answered to a [`Need`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Response {
    /// To [`Need::Read`].
    Read(Result<Reading, StoreError>),
    /// To [`Need::Create`] or [`Need::Swap`].
    Written(Result<Written, StoreError>),
}

/// What a round needs next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Need<Answered> {
    /// To read this record, from the store's latest state.
    Read(LeaseName),
    /// To write this record if there is none.
    Create(LeaseName, Entry),
    /// To write this record if it still has this revision.
    Swap(LeaseName, Revision, Entry),
    /// Nothing: this is the answer.
    Done(Result<Answered, StoreError>),
}

/// A request of the store contract that is decided from one reading of its record.
pub trait Decide {
    /// The contract's answer to it.
    type Answered: Clone + Eq + Hash + Debug;

    /// Whether [`decide`](Self::decide) looks at the token floor.
    const FLOOR: Floor;

    /// The lease that it is about.
    fn lease_name(&self) -> &LeaseName;

    /// What is to be done, now that the record was read.
    fn decide(&self, seen: Option<&Seen>, token_floor: u64) -> Decision<Self::Answered>;
}

/// A record that was read, with what its observer makes of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Seen {
    /// What the record holds.
    pub entry: Entry,
    /// The same as a lease: with the time that remains.
    pub lease: Lease,
    /// The highest number of renewals of its term that this process knows of.
    pub renewals: u64,
}

impl Seen {
    fn new(now: Moment, name: &LeaseName, version: Version, sightings: &Sightings) -> Self {
        Self {
            lease: sightings.lease(now, name, &version),
            renewals: sightings.renewals(name, &version.entry),
            entry: version.entry,
        }
    }

    /// The same term, extended by `ttl` from when it is written.
    pub(super) fn extended(&self, ttl: Ttl) -> Entry {
        Entry {
            ttl,
            renewals: self.renewals.saturating_add(1),
            ..self.entry.clone()
        }
    }
}

/// What is to be done about a request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Decision<Answered> {
    /// Nothing is written; this is the answer.
    Answer(Answered),
    /// This is written, on the condition that the record is still as it was read; then this is the answer.
    Write(Entry, Answered),
    /// Nothing can be done.
    Refuse(StoreError),
}

/// One request of the contract on its way through a store that only compares and swaps: read, decide, write.
///
/// Pure: whoever drives it does what [`next`](Self::next) asks for, once, and hands the response to
/// [`take_in`](Self::take_in). Every write is conditional on what was read, so rounds of any number of
/// processes may be interleaved in any way, cut off, or repeated.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Round<Request: Decide> {
    request: Request,
    conflicts: u32,
    step: Step<Request::Answered>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step<Answered> {
    Read,
    Write {
        /// `None`: there was no record.
        over: Option<Revision>,
        entry: Entry,
        then: Answered,
    },
    Done(Result<Answered, StoreError>),
}

impl Round<Acquire> {
    /// [`LeaseStore::acquire`](crate::LeaseStore::acquire). Whether the ttl is in the store's range is not
    /// looked at.
    #[must_use]
    pub fn acquire(request: Acquire) -> Self {
        Self::of(request)
    }
}

impl Round<Renew> {
    /// One request of [`LeaseStore::renew`](crate::LeaseStore::renew). Whether the ttl is in the store's
    /// range is not looked at.
    #[must_use]
    pub fn renew(request: Renew) -> Self {
        Self::of(request)
    }
}

impl Round<Release> {
    /// One request of [`LeaseStore::release`](crate::LeaseStore::release).
    #[must_use]
    pub fn release(request: Release) -> Self {
        Self::of(request)
    }
}

impl Round<Ask> {
    /// [`LeaseStore::ask`](crate::LeaseStore::ask).
    #[must_use]
    pub fn ask(request: Ask) -> Self {
        Self::of(request)
    }
}

impl Round<LeaseName> {
    /// [`LeaseStore::get`](crate::LeaseStore::get).
    #[must_use]
    pub fn get(name: LeaseName) -> Self {
        Self::of(name)
    }
}

impl<Request: Decide> Round<Request> {
    fn of(request: Request) -> Self {
        Self {
            request,
            conflicts: 0,
            step: Step::Read,
        }
    }

    /// The same without a first reading, where this process itself has written the record last, as far as it
    /// knows at `now`.
    ///
    /// Only a write is decided so: that it succeeds, on the condition that nobody has written since, is what
    /// shows that this was the latest state. Anything else, and a conflict, begins with a reading as ever.
    #[must_use]
    pub fn over_last_written(mut self, now: Moment, sightings: &mut Sightings) -> Self {
        let name = self.request.lease_name();
        if Request::FLOOR == Floor::Wanted {
            return self;
        }
        if let Some(version) = sightings.last_written(name) {
            let over = Some(version.revision.clone());
            let seen = Seen::new(now, name, version, sightings);
            if let Decision::Write(entry, then) = self.request.decide(Some(&seen), 0) {
                sightings.sends(name, &entry);
                self.step = Step::Write { over, entry, then };
            }
        }
        self
    }

    /// What it needs next: the same until a response is taken in.
    #[must_use]
    pub fn next(&self) -> Need<Request::Answered> {
        let name = self.request.lease_name().clone();
        match &self.step {
            Step::Read => Need::Read(name),
            Step::Write {
                over: None, entry, ..
            } => Need::Create(name, entry.clone()),
            Step::Write {
                over: Some(revision),
                entry,
                ..
            } => Need::Swap(name, revision.clone(), entry.clone()),
            Step::Done(answer) => Need::Done(answer.clone()),
        }
    }

    /// Takes in the response to [`next`](Self::next), exactly once; `now` is not before it had arrived.
    ///
    /// A response of the wrong kind is ignored: it is a duplicate.
    pub fn take_in(&mut self, now: Moment, response: Response, sightings: &mut Sightings) {
        self.step = match (std::mem::replace(&mut self.step, Step::Read), response) {
            (Step::Read, Response::Read(Ok(reading))) => self.decide(now, reading, sightings),
            // Nothing of this round was written: a conflict says so, and a write that may have been ends it.
            (Step::Read, Response::Read(Err(error))) => Step::Done(Err(StoreError {
                certainty: Certainty::NotApplied,
                ..error
            })),
            (Step::Write { entry, then, .. }, Response::Written(Ok(Written::As(revision)))) => {
                let version = Version {
                    revision,
                    entry,
                    ages: None,
                };
                sightings.wrote(now, self.request.lease_name(), version);
                Step::Done(Ok(then))
            }
            (Step::Write { .. }, Response::Written(Ok(Written::Conflict))) => self.read_again(),
            (Step::Write { .. }, Response::Written(Err(error))) => Step::Done(Err(error)),
            (step @ (Step::Read | Step::Done(_)), Response::Written(_))
            | (step @ (Step::Write { .. } | Step::Done(_)), Response::Read(_)) => step,
        };
    }

    fn decide(&self, now: Moment, reading: Reading, sightings: &mut Sightings) -> Step<Request::Answered> {
        let name = self.request.lease_name();
        sightings.see(now, name, reading.found.as_ref());
        let over = reading.found.as_ref().map(|version| version.revision.clone());
        let seen = reading
            .found
            .map(|version| Seen::new(now, name, version, sightings));
        match self.request.decide(seen.as_ref(), reading.token_floor) {
            Decision::Answer(answer) => Step::Done(Ok(answer)),
            Decision::Write(entry, then) => {
                sightings.sends(name, &entry);
                Step::Write { over, entry, then }
            }
            Decision::Refuse(error) => Step::Done(Err(error)),
        }
    }

    fn read_again(&mut self) -> Step<Request::Answered> {
        if self.conflicts == CONFLICTS_MAX {
            let name = self.request.lease_name();
            let message = format!(
                "lease \"{name}\" was written by others {} times in a row; nothing was changed: try again",
                CONFLICTS_MAX + 1
            );
            return Step::Done(Err(StoreError::not_applied(Fault::Busy, message)));
        }
        self.conflicts += 1;
        Step::Read
    }
}
