//! A state of the machine, and what may happen in it.

use super::Flaw;
use super::minds::IDS_EACH;
use super::notes::{Notes, keep};
use std::fmt;

pub(super) const SERVERS: usize = 5;

/// Of a list of three.
pub(super) const MAJORITY: usize = 2;

/// How often a server is told anew that has kept something else meanwhile.
pub(super) const ROUNDS_MAX: usize = 3;

/// Places of a list.
pub(super) const PLACES: [usize; 3] = [0, 1, 2];

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) notes: Notes,
    /// Who has the lease here: a candidate's number plus one.
    pub(super) lease: u8,
    pub(super) forgot: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Candidate {
    pub(super) mind: u32,
    /// Who has no lease, as it has seen since it knew that all keep its list.
    pub(super) free: [bool; 3],
}

/// How far a run of `store init` is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Phase {
    NotYet,
    /// What each keeps, and that none has a lease. In one step: what changes meanwhile, the rest must notice.
    Looks,
    /// Each keeps the new list instead of what was seen.
    Anew,
    LeasesAgain,
    Completes,
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) phase: Phase,
    /// Of this phase.
    pub(super) asked: [bool; 3],
    pub(super) done: [bool; 3],
    /// What each has kept, and then what each is to keep.
    pub(super) notes: [Notes; 3],
    pub(super) seen: [u8; 3],
}

/// A request whose sender waits for it no longer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Late {
    pub(super) server: usize,
    pub(super) told: Notes,
    pub(super) instead: Option<u8>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) servers: [Server; SERVERS],
    pub(super) candidates: [Candidate; 2],
    pub(super) runs: [Run; 2],
    pub(super) late: [Option<Late>; 2],
    pub(super) forgets: u8,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Deed {
    Meets,
    /// And cannot have it keep anything.
    MeetsOnly,
    Tells,
    TellsLate,
    SeesNoLease,
    Takes,
    Adopts,
    LosesIn,
    GivesBack,
    Restarts,
    Does(Phase),
    DoesLate(Phase),
    Dies,
    Arrives,
    Forgets,
}

/// Who does it, and with which server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Move {
    pub(super) who: &'static str,
    pub(super) deed: Deed,
    pub(super) server: Option<usize>,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.map_or("", |server| ["a", "b", "c", "d", "e"][server]);
        write!(f, "{} {:?} {server}", self.who, self.deed)
    }
}

impl Server {
    pub(super) fn is_held_by(&self, candidate: usize) -> bool {
        usize::from(self.lease) == candidate + 1
    }
}

impl State {
    /// The same, when all terms are over and nothing is under way.
    pub(super) fn quiet(&self) -> Self {
        let mut quiet = self.clone();
        quiet.servers.iter_mut().for_each(|server| server.lease = 0);
        (quiet.late, quiet.runs) = ([None; 2], [Run::ENDED; 2]);
        quiet
    }

    pub(super) fn tell(&mut self, server: usize, told: Notes, instead: Option<u8>, flaw: Option<Flaw>) {
        let notes = &mut self.servers[server].notes;
        *notes = keep(*notes, told, instead, flaw);
    }
}

impl Candidate {
    pub(super) fn new(mind: u32) -> Self {
        Self {
            mind,
            free: [false; 3],
        }
    }
}

impl Run {
    pub(super) const NOT_YET: Self = Self {
        phase: Phase::NotYet,
        asked: [false; 3],
        done: [false; 3],
        notes: [Notes {
            id: 0,
            list: 0,
            complete: false,
        }; 3],
        seen: [0; 3],
    };
    pub(super) const ENDED: Self = Self {
        phase: Phase::Ended,
        ..Self::NOT_YET
    };
}

pub(super) fn first_id(server: usize) -> u8 {
    u8::try_from(server).expect("few servers") * IDS_EACH + 1
}
