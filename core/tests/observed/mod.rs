//! A store that only compares and swaps, in memory, and an observer that drives rounds against it by hand.

use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Decide, Entry, FencingToken, Grant, Incarnation,
    Lease, LeaseName, Moment, Need, Note, Reading, Release, Renew, Renewed, Response, Revision, Round,
    Sightings, StoreError, Ttl, Version, Written,
};

/// ρ of every observer here: 10 %, so that a test sees it.
pub const RATE_ERROR_PPM: u32 = 100_000;

/// The store: revisions only rise, also through removals.
#[derive(Clone, Default)]
pub struct Shelf {
    pub records: BTreeMap<LeaseName, Version>,
    pub token_floor: u64,
    last_revision: u64,
}

impl Shelf {
    pub fn serve<T>(&mut self, need: Need<T>) -> Result<Response, Result<T, StoreError>> {
        let written = match need {
            Need::Done(answer) => return Err(answer),
            Need::Read(name) => {
                return Ok(Response::Read(Ok(Reading {
                    found: self.records.get(&name).cloned(),
                    token_floor: self.token_floor,
                })));
            }
            Need::Create(name, entry) if !self.records.contains_key(&name) => self.write(name, entry),
            Need::Swap(name, revision, entry)
                if self
                    .records
                    .get(&name)
                    .is_some_and(|now| now.revision == revision) =>
            {
                self.write(name, entry)
            }
            Need::Create(..) | Need::Swap(..) => Written::Conflict,
        };
        Ok(Response::Written(Ok(written)))
    }

    fn write(&mut self, name: LeaseName, entry: Entry) -> Written {
        self.last_revision += 1;
        let revision = Revision::from(self.last_revision);
        let version = Version {
            revision: revision.clone(),
            entry,
            ages: None,
        };
        self.records.insert(name, version);
        Written::As(revision)
    }
}

/// A process that looks at the store: its clock, and what it has seen.
pub struct Observer {
    pub now: Moment,
    pub sightings: Sightings,
}

impl Observer {
    pub fn new() -> Self {
        Self {
            now: Moment::from_millis(1_000),
            sightings: Sightings::new(RATE_ERROR_PPM),
        }
    }

    pub fn wait(&mut self, milliseconds: u64) {
        self.now = self.now.after(Duration::from_millis(milliseconds));
    }

    /// One need served and taken in at once.
    pub fn step<R: Decide>(&mut self, shelf: &mut Shelf, round: &mut Round<R>) {
        if let Ok(response) = shelf.serve(round.next()) {
            round.take_in(self.now, response, &mut self.sightings);
        }
    }

    /// The whole round, undisturbed.
    pub fn run<R: Decide>(
        &mut self,
        shelf: &mut Shelf,
        mut round: Round<R>,
    ) -> Result<R::Answered, StoreError> {
        loop {
            match shelf.serve(round.next()) {
                Ok(response) => round.take_in(self.now, response, &mut self.sightings),
                Err(answer) => return answer,
            }
        }
    }

    /// The round as the adaptor begins it.
    pub fn knowing<R: Decide>(&mut self, round: Round<R>) -> Round<R> {
        round.over_last_written(self.now, &mut self.sightings)
    }

    pub fn acquire(&mut self, shelf: &mut Shelf, request: &Acquire) -> Acquired {
        self.run(shelf, Round::acquire(request.clone())).unwrap()
    }

    pub fn take(&mut self, shelf: &mut Shelf, request: &Acquire) -> Grant {
        match self.acquire(shelf, request) {
            Acquired::Granted(grant) => grant,
            other => panic!("{request:?} was answered {other:?}"),
        }
    }

    pub fn be_refused(&mut self, shelf: &mut Shelf, request: &Acquire) -> Lease {
        match self.acquire(shelf, request) {
            Acquired::Held(lease) => lease,
            other => panic!("{request:?} was answered {other:?}"),
        }
    }

    pub fn renew(&mut self, shelf: &mut Shelf, request: &Acquire, token: FencingToken) -> Renewed {
        self.run(shelf, Round::renew(renewal(request, token))).unwrap()
    }

    pub fn lease(&mut self, shelf: &mut Shelf) -> Lease {
        self.run(shelf, Round::get(name())).unwrap().unwrap()
    }
}

pub fn name() -> LeaseName {
    LeaseName::new("ledger").unwrap()
}

/// A request of the process of this number, with a ttl of 1 s.
pub fn request(process: u128) -> Acquire {
    Acquire {
        name: name(),
        candidate: Candidate {
            id: CandidateId::new(format!("process-{process}")).unwrap(),
            incarnation: Incarnation::from_bits(process),
        },
        attempt: Attempt::FIRST,
        ttl: Ttl::from_secs(1).unwrap(),
        note: Note::default(),
    }
}

pub fn by_attempt(request: &Acquire, number: u64) -> Acquire {
    Acquire {
        attempt: Attempt::new(number).unwrap(),
        ..request.clone()
    }
}

pub fn renewal(request: &Acquire, token: FencingToken) -> Renew {
    Renew {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token,
        attempt: request.attempt,
        ttl: request.ttl,
    }
}

pub fn release(request: &Acquire, token: FencingToken) -> Release {
    Release {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token,
        attempt: request.attempt,
    }
}
