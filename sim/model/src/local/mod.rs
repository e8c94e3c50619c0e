//! One candidate with everything that is its own: the process, its messages, its work. Every candidate calls
//! itself the same, so that candidates in the same situation are the same value, whoever they are.

mod moves;
mod process;
mod summary;

pub(crate) use moves::{Copy, Given, Move, given, moves};
pub(crate) use summary::{Brief, State, Summary};

use crate::configuration::{ASKED_TICKS, TICK, timing};
use crate::message::{Answer, Ask};
use crate::names::{Census, Names, Ranks, SHORTEST_PAUSES};
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::time::Duration;
use tenure_core::{Candidate, CandidateId, Engine, Incarnation, LeaseName, Moment, RequestId};

/// What every engine's clock shows, always: moments are told relative to it.
pub(crate) const NOW: Moment = Moment::from_millis(3_600_000);

/// The incarnation that every running process calls its own.
pub(crate) fn itself() -> Incarnation {
    Incarnation::from_bits(1)
}

static NAMES: LazyLock<(LeaseName, CandidateId)> = LazyLock::new(|| {
    let lease = LeaseName::new("job").expect("a valid name");
    let candidate = CandidateId::new("worker").expect("a valid id");
    (lease, candidate)
});

/// The lease.
pub(crate) fn lease_name() -> LeaseName {
    NAMES.0.clone()
}

/// A process. All have the same id: only the incarnation may count.
pub(crate) fn candidate(incarnation: Incarnation) -> Candidate {
    Candidate {
        id: NAMES.1.clone(),
        incarnation,
    }
}

/// A process that is not the one that asks.
pub(crate) fn another() -> Candidate {
    candidate(Incarnation::from_bits(2))
}

/// A candidate.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Local {
    /// `None` after a crash.
    pub(crate) process: Option<Process>,
    /// Messages that outlived their request, in order.
    pub(crate) late: Vec<Late>,
}

/// A running process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Process {
    pub(crate) engine: Engine,
    pub(crate) clock: Clock,
    /// For how many ticks something has been due that the engine was not woken for.
    pub(crate) overdue: u8,
    /// Requests whose answer the engine awaits.
    pub(crate) live: Vec<Live>,
    /// The token of the term that has begun and not ended, by the events; 0 for none.
    pub(crate) open: u8,
    pub(crate) work: Option<Work>,
    /// The token whose release was sent last, as long as the store could give it again; 0 for none.
    pub(crate) left: u8,
}

/// Whether a process's clock has shown this tick of the store's clock already. So it is always between the
/// store's clock and one tick ahead, and in any time it may move one tick more or less than the store's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Clock {
    Level,
    Ahead,
}

/// A request that was sent and not given up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Live {
    pub(crate) id: RequestId,
    pub(crate) ask: Ask,
    /// The answer, once the store has applied it.
    pub(crate) answer: Option<Answer>,
}

/// A message that arrives after nobody waits for it any more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Late {
    /// A request, or one more copy of it. `by` is who sent it; nobody hears the answer.
    Request { by: Sender, ask: Ask },
    /// An answer.
    Answer { id: RequestId, answer: Answer },
}

/// The process that sent a message or holds the lease: the one that runs (or died last), or the one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Sender {
    Present,
    Former,
}

/// What a term's work is doing. It does not look at any clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Work {
    pub(crate) token: u8,
    pub(crate) phase: Phase,
}

/// How far the work has come with the data that a fence protects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Phase {
    /// It has not claimed the fence.
    Unclaimed,
    /// It has claimed, and read what is there now.
    Fresh,
    /// It has claimed and read, and somebody has written since.
    Outdated,
}

impl Local {
    /// A process that was just started.
    pub(crate) fn started(late: Vec<Late>) -> Self {
        let engine = Engine::new(candidate(itself()), timing(), NonZeroUsize::MIN, SHORTEST_PAUSES);
        let process = Process {
            engine,
            clock: Clock::Level,
            overdue: 0,
            live: Vec::new(),
            open: 0,
            work: None,
            left: 0,
        };
        Self {
            process: Some(process),
            late,
        }
        .normal(Duration::ZERO)
    }

    /// The same candidate `passed` later, without what no longer matters, and with its requests numbered from
    /// 0.
    pub(crate) fn normal(mut self, passed: Duration) -> Self {
        self.late.sort_unstable();
        let Some(process) = &mut self.process else {
            return self;
        };
        let mut census = Census::default();
        process.engine.rename(&mut census);
        for live in &process.live {
            let _ = live.id.renamed(&mut census);
        }
        for late in &self.late {
            if let Late::Answer { id, .. } = late {
                let _ = id.renamed(&mut census);
            }
        }
        let mut names = Names {
            passed,
            horizon: TICK * ASKED_TICKS,
            tokens: None,
            attempts: None,
            requests: Some(census.requests),
        };
        process.engine.rename(&mut names);
        for live in &mut process.live {
            live.id = live.id.renamed(&mut names);
        }
        process.live.sort_unstable();
        for late in &mut self.late {
            if let Late::Answer { id, .. } = late {
                *id = id.renamed(&mut names);
            }
        }
        self
    }

    /// The same candidate without the memory of terms that are over for ever, now that the record's token is
    /// this one: tokens only rise, so a late request about another term finds it never again.
    pub(crate) fn aged(&self, record_token: u8) -> Self {
        let mut local = self.clone();
        for late in &mut local.late {
            if let Late::Request { ask, .. } = late {
                *ask = ask.aged(record_token);
            }
        }
        if let Some(process) = &mut local.process
            && process.left != record_token
        {
            process.left = 0;
        }
        local.normal(Duration::ZERO)
    }

    /// The same candidate with tokens and attempts replaced by their ranks.
    pub(crate) fn renamed(&self, tokens: Ranks, present: Ranks, former: Ranks) -> Self {
        let mut local = self.clone();
        for late in &mut local.late {
            *late = match *late {
                Late::Request { by, ask } => {
                    let attempts = match by {
                        Sender::Present => present,
                        Sender::Former => former,
                    };
                    let ask = ask.renamed(tokens, attempts);
                    Late::Request { by, ask }
                }
                Late::Answer { id, answer } => Late::Answer {
                    id,
                    answer: answer.renamed(tokens, present),
                },
            };
        }
        if let Some(process) = &mut local.process {
            let mut names = Names {
                passed: Duration::ZERO,
                horizon: TICK * ASKED_TICKS,
                tokens: Some(tokens),
                attempts: Some(present),
                requests: None,
            };
            process.engine.rename(&mut names);
            for live in &mut process.live {
                live.ask = live.ask.renamed(tokens, present);
                live.answer = live.answer.map(|answer| answer.renamed(tokens, present));
            }
            process.open = tokens.name(process.open);
            process.left = tokens.name(process.left);
            process.work = process.work.map(|work| Work {
                token: tokens.name(work.token),
                ..work
            });
        }
        local.normal(Duration::ZERO)
    }
}
