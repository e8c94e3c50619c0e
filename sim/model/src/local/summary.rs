use super::{Clock, Late, Local, NOW, Sender, Work, lease_name};
use crate::message::Ask;
use crate::names::{Census, Ranks};
use tenure_core::Authority;

/// What the world asks of a candidate, worked out once.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// Tokens in use.
    pub(crate) tokens: Ranks,
    /// Attempts in use: of the present process, and of the former one.
    pub(crate) present: Ranks,
    pub(crate) former: Ranks,
    /// The token in which it believes at its own clock; 0 for none.
    pub(crate) believes: u8,
    /// Tokens that count only as long as the record has the same.
    pub(crate) ageing: Ranks,
    pub(crate) state: State,
    pub(crate) work: Option<Work>,
    /// Live requests that were not applied, with their place.
    pub(crate) unapplied: Vec<(u8, Ask)>,
    /// Late requests, with their place.
    pub(crate) late_requests: Vec<(u8, Sender, Ask)>,
    /// How many late messages are kept.
    pub(crate) late: usize,
    /// Whether requests of these senders may still arrive.
    pub(crate) present_may_act: bool,
    pub(crate) former_may_act: bool,
}

/// Whether a process runs, and how its clock stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Crashed,
    Running(Clock),
}

impl Summary {
    pub(crate) fn of(local: &Local) -> Self {
        let (mut tokens, mut present, mut former) = (Ranks::default(), Ranks::default(), Ranks::default());
        let mut summary = Self {
            tokens,
            present,
            former,
            believes: 0,
            ageing: Ranks::default(),
            state: State::Crashed,
            work: None,
            unapplied: Vec::new(),
            late_requests: Vec::new(),
            late: local.late.len(),
            present_may_act: local.process.is_some(),
            former_may_act: false,
        };
        for (place, late) in (0_u8..).zip(&local.late) {
            match late {
                Late::Request { by, ask } => {
                    summary.late_requests.push((place, *by, *ask));
                    summary.ageing.add_name(ask.term());
                    match by {
                        Sender::Present => {
                            summary.present_may_act = true;
                            ask.count(&mut tokens, &mut present);
                        }
                        Sender::Former => {
                            summary.former_may_act = true;
                            ask.count(&mut tokens, &mut former);
                        }
                    }
                }
                Late::Answer { answer, .. } => answer.count(&mut tokens, &mut present),
            }
        }
        if let Some(process) = &local.process {
            let mut census = Census {
                tokens,
                attempts: present,
                ..Census::default()
            };
            process.engine.clone().rename(&mut census);
            (tokens, present) = (census.tokens, census.attempts);
            for (place, live) in (0_u8..).zip(&process.live) {
                live.ask.count(&mut tokens, &mut present);
                match live.answer {
                    Some(answer) => answer.count(&mut tokens, &mut present),
                    None => summary.unapplied.push((place, live.ask)),
                }
            }
            for token in [
                process.open,
                process.left,
                process.work.map_or(0, |work| work.token),
            ] {
                tokens.add_name(token);
            }
            summary.believes = match process.engine.authority(&lease_name(), NOW) {
                Authority::None => 0,
                Authority::Held { token, .. } | Authority::Doubtful { token, .. } => {
                    crate::names::small(token.number())
                }
            };
            summary.ageing.add_name(process.left);
            summary.state = State::Running(process.clock);
            summary.work = process.work;
        }
        Self {
            tokens,
            present,
            former,
            ..summary
        }
    }
}
