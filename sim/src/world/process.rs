//! One candidate process: its engine, its clock, its connections, and what its leases look like from inside.

use super::clock::Clock;
use super::happening::Happening;
use crate::chance::Chance;
use crate::invariants::{
    AttemptRotates, Believed, HintIsFollowed, ObserversNeverGoBack, OnceEach, ReleaseComesLast, Retries,
    WithdrawnAsksNoMore,
};
use crate::plan::NAMES_MAX;
use tenure_core::{CandidateId, Engine, RequestId, Sightings, Timing};

/// How many answered requests are remembered: others are answered before a double of the first arrives.
const ANSWERED: usize = 16;

/// No moment: later than every run.
pub(crate) const NEVER: u64 = u64::MAX / 4;

pub(crate) struct Process {
    pub(crate) id: CandidateId,
    /// The engine; `None` while the process is dead.
    pub(crate) engine: Option<Engine>,
    /// Which start of which process this is: unique in a world.
    pub(crate) instance: u32,
    pub(crate) timing: Timing,
    pub(crate) clock: Clock,
    /// Chance of this process alone, so that what befalls one changes no draw of another.
    pub(crate) dice: Chance,
    /// It stands still until then.
    pub(crate) frozen_until: u64,
    /// Since when its clock stands still with it.
    pub(crate) clock_frozen_at: Option<u64>,
    /// What happened to it while it stood still.
    pub(crate) deferred: Vec<Happening>,
    /// When its engine was stepped last, by its own clock.
    pub(crate) stepped_local: u64,
    /// When the engine wants to be woken, by its own clock.
    pub(crate) wake_local: u64,
    /// The soonest wake-up that is planned, in real time.
    pub(crate) wake_planned: u64,
    /// By how much it wakes too late.
    pub(crate) late: u64,
    /// Which connection to the store it uses: what was sent on an earlier one is lost.
    pub(crate) connection: u32,
    pub(crate) watch: WatchState,
    /// When its watch told the last thing: a watch does not lie about order.
    pub(crate) watch_last: u64,
    pub(crate) cut_to: Reach,
    pub(crate) cut_from: Reach,
    pub(crate) cuts: u32,
    pub(crate) arms: Arms,
    pub(crate) seats: [SeatView; NAMES_MAX],
    /// Requests that it has sent.
    pub(crate) sent: u64,
    /// The latest requests that were answered.
    answered: [Option<RequestId>; ANSWERED],
    /// What it has seen of a store that judges nothing.
    pub(crate) sightings: Sightings,
}

/// Whether messages pass in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    Open,
    Cut,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WatchState {
    Off,
    Starting,
    On,
}

/// Faults that wait for their opportunity: how many, or how large.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Arms {
    pub(crate) lose_request: u8,
    pub(crate) lose_reply: u8,
    pub(crate) cut_after: u16,
    pub(crate) delay: u16,
    pub(crate) reorder: u16,
    pub(crate) duplicate: u8,
    pub(crate) late_duplicate: u16,
    pub(crate) busy: u8,
    pub(crate) unreachable: u8,
    pub(crate) misconfigured: u8,
    pub(crate) withdraw: u16,
    pub(crate) watch_loss: u8,
    pub(crate) watch_duplicate: u8,
    pub(crate) watch_delay: u16,
    pub(crate) late_wake: u16,
    pub(crate) late_write: u16,
    pub(crate) stale_read: u8,
}

/// What a process knows of one lease, with the laws that watch over it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SeatView {
    pub(crate) believed: Believed,
    pub(crate) work: Work,
    pub(crate) once: OnceEach,
    pub(crate) rotates: AttemptRotates,
    pub(crate) release: ReleaseComesLast,
    pub(crate) told: ObserversNeverGoBack,
    pub(crate) hints: HintIsFollowed,
    pub(crate) retries: Retries,
    pub(crate) wanted: WithdrawnAsksNoMore,
    /// The term that it was told to doubt; 0 for none.
    pub(crate) doubted: u64,
    /// The term that it was asked to end, or ends by itself; 0 for none.
    pub(crate) ending: u64,
    /// Until when the term that it gives back would have been believed in, by the process's clock; 0 for
    /// none.
    pub(crate) left_until: u64,
    /// When its campaign was first told to withdraw, in real time; 0 if it was not.
    pub(crate) withdrew_at: u64,
    /// When it gives up the request that it asked for the lease by, by the process's clock; 0 if that was
    /// answered.
    pub(crate) asking_until: u64,
    /// Which of the applications of its requests it has heard of last.
    pub(crate) heard: u64,
    /// The progress gate, in nanoseconds; 0 for none.
    pub(crate) gate: u64,
    /// The token of the term that its campaign is to take the lease from; 0 for none.
    pub(crate) heir_of: u64,
}

/// The work of one term.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Work {
    /// Which work this is: what was planned for an earlier one is void.
    pub(crate) serial: u32,
    /// The term; 0 while there is none.
    pub(crate) token: u64,
    pub(crate) stage: Stage,
    /// An access is under way.
    pub(crate) under_way: UnderWay,
    /// When the term is to end.
    pub(crate) ends_at: u64,
    pub(crate) ending: Ending,
    pub(crate) stuck_until: u64,
    /// For the flaw of reading before claiming: what was read.
    pub(crate) flawed_read: u64,
    /// When it last reported progress, by the process's clock.
    pub(crate) progress_local: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Stage {
    #[default]
    Claim,
    Read,
    Write {
        saw: u64,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum UnderWay {
    #[default]
    Nothing,
    Access,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Ending {
    #[default]
    No,
    Begun,
}

impl Process {
    pub(crate) fn new(id: CandidateId, timing: Timing, clock: Clock, dice: Chance) -> Self {
        Self {
            id,
            engine: None,
            instance: 0,
            timing,
            clock,
            dice,
            frozen_until: 0,
            clock_frozen_at: None,
            deferred: Vec::new(),
            stepped_local: 0,
            wake_local: NEVER,
            wake_planned: NEVER,
            late: 0,
            connection: 0,
            watch: WatchState::Off,
            watch_last: 0,
            cut_to: Reach::Open,
            cut_from: Reach::Open,
            cuts: 0,
            arms: Arms::default(),
            seats: [SeatView::default(); NAMES_MAX],
            sent: 0,
            answered: [None; ANSWERED],
            sightings: Sightings::new(0),
        }
    }

    /// Whether it lives and is this very start of it.
    pub(crate) fn is(&self, instance: u32) -> bool {
        self.engine.is_some() && self.instance == instance
    }

    pub(crate) fn is_frozen(&self, now: u64) -> bool {
        now < self.frozen_until
    }

    /// Whether this request was answered before, as far as is remembered.
    pub(crate) fn was_answered(&self, request: RequestId) -> bool {
        self.answered.contains(&Some(request))
    }

    pub(crate) fn note_answer(&mut self, request: RequestId) {
        self.answered.rotate_right(1);
        self.answered[0] = Some(request);
    }

    /// Its clock was changed: where its beliefs end in real time is reckoned anew.
    pub(crate) fn reckon_beliefs(&mut self) {
        for seat in &mut self.seats {
            if seat.believed.token != 0 {
                seat.believed.until_real = self.clock.real_at(seat.believed.until_local);
            }
        }
    }

    /// Forgets everything that dies with a process.
    pub(crate) fn die(&mut self) {
        self.engine = None;
        self.deferred.clear();
        self.frozen_until = 0;
        self.clock_frozen_at = None;
        self.stepped_local = 0;
        (self.wake_local, self.wake_planned) = (NEVER, NEVER);
        self.watch = WatchState::Off;
        self.answered = [None; ANSWERED];
        self.connection += 1;
        for seat in &mut self.seats {
            let serial = seat.work.serial + 1;
            *seat = SeatView::default();
            seat.work.serial = serial;
        }
    }
}
