//! What a candidate can do by itself, and what the world can do to it.

use super::process::{Stepped, kept, late};
use super::{Clock, Late, Local, Phase, Process, Sender, lease_name};
use crate::configuration::{Configuration, Feature, TICK};
use crate::invariant::Invariant;
use crate::label::Label;
use crate::message::{Answer, failure};
use crate::milestone::{Milestone, Milestones};
use crate::names::{Ranks, token_of};
use std::time::Duration;
use tenure_core::{Certainty, Change, Command, Input, Note, WatchEvent};

/// Something that can happen to a candidate, and what it is then.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) label: Label,
    pub(crate) local: Local,
    pub(crate) reached: Milestones,
    pub(crate) broken: Option<Invariant>,
    /// The attempts that it may have taken the lease by, if it said that its campaign is over and released
    /// nothing.
    pub(crate) forgot: Ranks,
}

/// What the world does to a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Given {
    /// The store has applied the live request in this place.
    Applied { place: u8, answer: Answer, copy: Copy },
    /// The late request in this place has arrived at the store.
    LateArrived { place: u8 },
    /// The store's clock has moved: the process's clock is no longer ahead.
    StoreTick,
    /// The watch reports this of this term.
    Told { change: Change, token: u8 },
    /// The watch has missed something.
    Gap,
    /// The work has claimed the fence, and read.
    Claimed,
    /// The work has written.
    Wrote,
    /// Somebody else has written.
    Outdated,
}

impl Given {
    /// What is done as a number.
    pub(crate) fn code(self) -> u32 {
        let (kind, rest) = match self {
            Self::Applied { place, answer, copy } => {
                let copy = u32::from(copy == Copy::Stays);
                (0, copy | u32::from(place) << 1 | answer.code() << 4)
            }
            Self::LateArrived { place } => (1, u32::from(place)),
            Self::StoreTick => (2, 0),
            Self::Told { change, token } => {
                let change = match change {
                    Change::Vacated => 0,
                    Change::Taken => 1,
                    Change::Asked => 2,
                };
                (3, change | u32::from(token) << 2)
            }
            Self::Gap => (4, 0),
            Self::Claimed => (5, 0),
            Self::Wrote => (6, 0),
            Self::Outdated => (7, 0),
        };
        kind | rest << 3
    }
}

/// Whether a copy of an applied request stays under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Copy {
    Stays,
    None,
}

/// Everything that can happen to this candidate whatever the world is like. What changes nothing is left out.
pub(crate) fn moves(configuration: &Configuration, local: &Local) -> Vec<Move> {
    let mut moves = match &local.process {
        None => vec![restart(local)],
        Some(process) => running(configuration, local, process),
    };
    moves.retain(|a_move| a_move.broken.is_some() || a_move.local != *local);
    moves
}

fn restart(local: &Local) -> Move {
    let late = local
        .late
        .iter()
        .filter_map(|late| match *late {
            Late::Request {
                by: Sender::Present,
                ask,
            } => Some(Late::Request {
                by: Sender::Former,
                ask,
            }),
            // The bound of the model: messages of one former process at a time.
            Late::Request {
                by: Sender::Former, ..
            }
            | Late::Answer { .. } => None,
        })
        .collect();
    quiet(Label::Restart, Local::started(late))
}

fn quiet(label: Label, local: Local) -> Move {
    Move {
        label,
        local,
        reached: Milestones::default(),
        broken: None,
        forgot: Ranks::default(),
    }
}

fn running(configuration: &Configuration, local: &Local, process: &Process) -> Vec<Move> {
    let mut moves = Vec::new();
    let mut step = |label, process: &Process, late: &[Late], lost: &[Late], input| {
        extend(
            &mut moves,
            configuration,
            label,
            late,
            lost,
            process.step(configuration, input),
        );
    };
    step(Label::Wakes, process, &local.late, &[], Input::Tick);
    let due = u8::from(moves.iter().any(|woken| woken.local != *local));
    if process.clock == Clock::Level && process.overdue + due <= configuration.overdue_max {
        moves.push(quiet(Label::ClockTicks, ticked(local, due)));
    }
    let mut step = |label, process: &Process, late: &[Late], lost: &[Late], input| {
        extend(
            &mut moves,
            configuration,
            label,
            late,
            lost,
            process.step(configuration, input),
        );
    };
    for (place, live) in (0_u8..).zip(&process.live) {
        let mut rest = process.clone();
        rest.live.remove(usize::from(place));
        let answered = |reply| Input::Answer {
            request: live.id,
            reply,
        };
        if let Some(answer) = live.answer {
            let label = Label::AnswerArrives {
                ask: live.ask,
                answer,
            };
            step(label, &rest, &local.late, &[], answered(answer.reply()));
        }
        if configuration.has(Feature::StoreErrors) {
            let label = |certainty| Label::ErrorArrives {
                ask: live.ask,
                certainty,
            };
            let unknown = failure(live.ask, Certainty::Unknown);
            let lost: &[Late] = match live.answer {
                Some(_) => &[],
                None => &[late(*live)],
            };
            let input = answered(unknown);
            step(label(Certainty::Unknown), &rest, &local.late, lost, input);
            if live.answer.is_none() {
                let input = answered(failure(live.ask, Certainty::NotApplied));
                step(label(Certainty::NotApplied), &rest, &local.late, &[], input);
            }
        }
    }
    for (place, late) in local.late.iter().enumerate() {
        if let Late::Answer { id, answer } = *late {
            let mut rest = local.late.clone();
            rest.remove(place);
            let input = Input::Answer {
                request: id,
                reply: answer.reply(),
            };
            step(Label::LateAnswerArrives { answer }, process, &rest, &[], input);
        }
    }
    commands(configuration, local, process, &mut moves);
    if configuration.has(Feature::Crashes) {
        crashes(configuration, local, process, &mut moves);
    }
    moves
}

/// The candidate after its clock has moved by a tick.
fn ticked(local: &Local, due: u8) -> Local {
    let mut later = local.clone();
    if let Some(process) = &mut later.process {
        process.clock = Clock::Ahead;
        process.overdue += due;
    }
    later.normal(TICK)
}

fn commands(configuration: &Configuration, local: &Local, process: &Process, moves: &mut Vec<Move>) {
    let mut step = |label, process: &Process, command| {
        let stepped = process.step(configuration, Input::Command(command));
        extend(moves, configuration, label, &local.late, &[], stepped);
    };
    let name = lease_name();
    if let Some(work) = process.work {
        let mut idle = process.clone();
        idle.work = None;
        let token = token_of(work.token);
        let command = Command::WorkEnded {
            name: name.clone(),
            token,
        };
        step(Label::WorkEnds { token: work.token }, &idle, command);
        if configuration.has(Feature::HandOns) {
            let command = Command::HandOn {
                name,
                token,
                note: Note::default(),
                progress_within: None,
                max_hold: None,
            };
            step(Label::HandsOn { token: work.token }, &idle, command);
        }
    } else if process.open == 0 {
        let command = Command::Campaign {
            name: name.clone(),
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        };
        step(Label::Campaigns, process, command);
        if configuration.has(Feature::Withdrawals) {
            step(Label::Withdraws, process, Command::Withdraw { name });
        }
    }
    if process.open != 0 && configuration.has(Feature::Requests) {
        let token = token_of(process.open);
        let name = lease_name();
        step(Label::StepsDown, process, Command::StepDown { name, token });
    }
}

fn crashes(configuration: &Configuration, local: &Local, process: &Process, moves: &mut Vec<Move>) {
    let requests: Vec<Late> = process
        .live
        .iter()
        .filter(|live| live.answer.is_none())
        .map(|live| late(*live))
        .collect();
    let survivors: Vec<Late> = local
        .late
        .iter()
        .filter(|late| matches!(late, Late::Request { .. }))
        .copied()
        .collect();
    for late in kept(configuration, &survivors, &requests) {
        let crashed = Local { process: None, late };
        let mut a_move = quiet(Label::Crashes, crashed.normal(Duration::ZERO));
        a_move.reached.add(Milestone::Crashed);
        moves.push(a_move);
    }
}

/// Adds what a step leads to, once for every way in which messages are lost or late. `lost` are messages of
/// the very request that the step was told of, and that may be under way all the same.
fn extend(
    moves: &mut Vec<Move>,
    configuration: &Configuration,
    label: Label,
    late: &[Late],
    lost: &[Late],
    mut stepped: Stepped,
) {
    stepped.given_up.extend_from_slice(lost);
    for late in kept(configuration, late, &stepped.given_up) {
        let local = Local {
            process: Some(stepped.process.clone()),
            late,
        };
        moves.push(Move {
            label,
            local: local.normal(Duration::ZERO),
            reached: stepped.reached,
            broken: stepped.broken,
            forgot: stepped.forgot,
        });
    }
}

/// What becomes of this candidate when the world does this to it: usually one thing; none if it cannot be
/// done.
pub(crate) fn given(configuration: &Configuration, local: &Local, given: Given) -> Vec<Move> {
    let mut after = local.clone();
    let mut moves = Vec::new();
    if let Given::LateArrived { place } = given {
        after.late.remove(usize::from(place));
        return vec![quiet(Label::LateArrives, after)];
    }
    let Some(process) = &mut after.process else {
        return moves;
    };
    let mut told = |process: &Process, event| {
        let stepped = process.step(configuration, Input::Watch(event));
        extend(&mut moves, configuration, Label::Told, &local.late, &[], stepped);
    };
    match given {
        Given::LateArrived { .. } => {}
        Given::Applied { place, answer, copy } => {
            let live = &mut process.live[usize::from(place)];
            live.answer = Some(answer.needed(configuration));
            let ask = live.ask;
            if copy == Copy::Stays {
                let by = Sender::Present;
                after.late.push(Late::Request { by, ask });
            }
            moves.push(quiet(Label::Applied, after.normal(Duration::ZERO)));
        }
        Given::StoreTick => {
            process.clock = Clock::Level;
            moves.push(quiet(Label::StoreTick, after));
        }
        Given::Told { change, token } => {
            let name = lease_name();
            let token = Some(token_of(token));
            told(process, WatchEvent::Changed { name, change, token });
        }
        Given::Gap => told(process, WatchEvent::Gap),
        Given::Claimed => worked(&mut moves, after, Label::Claims, Phase::Fresh),
        Given::Wrote => worked(&mut moves, after, Label::Writes, Phase::Fresh),
        Given::Outdated => worked(&mut moves, after, Label::Outdated, Phase::Outdated),
    }
    moves
}

fn worked(moves: &mut Vec<Move>, mut local: Local, label: Label, phase: Phase) {
    if let Some(work) = local.process.as_mut().and_then(|process| process.work.as_mut()) {
        work.phase = phase;
        moves.push(quiet(label, local));
    }
}
