use super::{Clock, Late, Local, NOW, Process, Sender, Work, lease_name};
use crate::message::Ask;
use crate::names::{Census, Ranks, small};

/// What is asked of a candidate most often. Small, so that those of all situations stay near the processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    /// Tokens in use.
    pub(crate) tokens: Ranks,
    /// Attempts in use: of the present process, and of the former one.
    pub(crate) present: Ranks,
    pub(crate) former: Ranks,
    /// Tokens that count only as long as the record has the same.
    pub(crate) ageing: Ranks,
    /// The token in which it believes at its own clock; 0 for none.
    pub(crate) believes: u8,
    /// How many late messages are kept.
    pub(crate) late: u8,
    /// Whether requests of these senders may still arrive.
    pub(crate) present_may_act: bool,
    pub(crate) former_may_act: bool,
    pub(crate) state: State,
}

/// What else the world asks of a candidate, worked out once.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) brief: Brief,
    pub(crate) work: Option<Work>,
    /// The token whose release was sent last; 0 for none.
    pub(crate) left: u8,
    /// Live requests that were not applied, with their place.
    pub(crate) unapplied: Vec<(u8, Ask)>,
    /// Late requests, with their place.
    pub(crate) late_requests: Vec<(u8, Sender, Ask)>,
}

/// Whether a process runs, and how its clock stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Crashed,
    Running(Clock),
}

impl Summary {
    pub(crate) fn of(local: &Local) -> Self {
        let mut summary = Self {
            brief: Brief {
                tokens: Ranks::default(),
                present: Ranks::default(),
                former: Ranks::default(),
                ageing: Ranks::default(),
                believes: 0,
                late: u8::try_from(local.late.len()).expect("at most 3"),
                present_may_act: local.process.is_some(),
                former_may_act: false,
                state: State::Crashed,
            },
            work: None,
            left: 0,
            unapplied: Vec::new(),
            late_requests: Vec::new(),
        };
        for (place, late) in (0_u8..).zip(&local.late) {
            summary.add_late(place, late);
        }
        if let Some(process) = &local.process {
            summary.add_process(process);
        }
        summary
    }

    fn add_late(&mut self, place: u8, late: &Late) {
        let brief = &mut self.brief;
        match late {
            Late::Request { by, ask } => {
                self.late_requests.push((place, *by, *ask));
                brief.ageing.add_name(ask.term());
                let (may_act, attempts) = match by {
                    Sender::Present => (&mut brief.present_may_act, &mut brief.present),
                    Sender::Former => (&mut brief.former_may_act, &mut brief.former),
                };
                *may_act = true;
                ask.count(&mut brief.tokens, attempts);
            }
            Late::Answer { answer, .. } => answer.count(&mut brief.tokens, &mut brief.present),
        }
    }

    fn add_process(&mut self, process: &Process) {
        let brief = &mut self.brief;
        let mut census = Census {
            tokens: brief.tokens,
            attempts: brief.present,
            ..Census::default()
        };
        process.engine.clone().rename(&mut census);
        (brief.tokens, brief.present) = (census.tokens, census.attempts);
        for (place, live) in (0_u8..).zip(&process.live) {
            live.ask.count(&mut brief.tokens, &mut brief.present);
            match live.answer {
                Some(answer) => answer.count(&mut brief.tokens, &mut brief.present),
                None => self.unapplied.push((place, live.ask)),
            }
        }
        for token in [
            process.open,
            process.left,
            process.work.map_or(0, |work| work.token),
        ] {
            brief.tokens.add_name(token);
        }
        brief.ageing.add_name(process.left);
        let believed = process.engine.authority(&lease_name(), NOW).token();
        brief.believes = believed.map_or(0, |token| small(token.number()));
        brief.state = State::Running(process.clock);
        self.work = process.work;
        self.left = process.left;
    }
}
