use super::{Late, Live, NOW, Phase, Process, Sender, Work, lease_name};
use crate::configuration::{Configuration, Feature};
use crate::invariant::Invariant;
use crate::message::{Answer, Ask};
use crate::milestone::{Milestone, Milestones};
use crate::names::{Census, Ranks, small};
use tenure_core::{Authority, Cause, Departure, Event, Input, Request};

/// A process after one step, before it is known what becomes of the messages that nobody waits for any more.
pub(super) struct Stepped {
    pub(super) process: Process,
    /// Live messages whose request was given up in this step.
    pub(super) given_up: Vec<Late>,
    pub(super) reached: Milestones,
    pub(super) broken: Option<Invariant>,
    /// The attempts that the engine knew of before, if it said in this step that its campaign is over and
    /// released nothing.
    pub(super) forgot: Ranks,
}

impl Process {
    /// Steps the engine now.
    pub(super) fn step(&self, configuration: &Configuration, input: Input) -> Stepped {
        let mut stepped = Stepped {
            process: self.clone(),
            given_up: Vec::new(),
            reached: Milestones::default(),
            broken: None,
            forgot: Ranks::default(),
        };
        let looked = matches!(
            input,
            Input::Answer {
                reply: tenure_core::Reply::Looked(_),
                ..
            }
        );
        stepped.process.overdue = 0;
        let actions = stepped.process.engine.step(NOW, input);
        if actions
            .events
            .iter()
            .any(|event| matches!(event, Event::Withdrawn { .. } | Event::CampaignEnded { .. }))
            && !actions
                .requests
                .iter()
                .any(|request| matches!(request.operation, tenure_core::Operation::Release(_)))
        {
            let mut census = Census::default();
            self.engine.clone().rename(&mut census);
            stepped.forgot = census.attempts;
        }
        let departed = |event: &Event| matches!(event, Event::Departed { .. });
        let acquired = |event: &Event| matches!(event, Event::Acquired { .. });
        if actions.events.iter().any(departed) && actions.events.iter().any(acquired) {
            stepped.reached.add(Milestone::HandedOn);
        }
        for event in actions.events {
            stepped.event(&event);
        }
        for request in actions.requests {
            if looked && matches!(request.operation, tenure_core::Operation::Release(_)) {
                stepped.reached.add(Milestone::OrphanReleased);
            }
            stepped.request(&request);
        }
        let process = &mut stepped.process;
        // Without a fence, work that goes on after its term makes no difference.
        if process.open == 0 && !configuration.has(Feature::Fence) {
            process.work = None;
        }
        if process.engine.belief(&lease_name()).is_some() != (process.open != 0) {
            stepped.broken = stepped.broken.or(Some(Invariant::TermOnce));
        }
        let live = std::mem::take(&mut process.live);
        for message in live {
            if process.engine.awaits(message.id) {
                process.live.push(message);
            } else {
                stepped.given_up.push(late(message));
                stepped.reached.add(Milestone::RequestGivenUp);
                if message.answer.is_some() {
                    stepped.reached.add(Milestone::UnknownOutcome);
                }
            }
        }
        stepped
    }
}

/// What a message becomes that nobody waits for any more.
pub(super) fn late(message: Live) -> Late {
    match message.answer {
        Some(answer) => Late::Answer {
            id: message.id,
            answer,
        },
        None => Late::Request {
            by: Sender::Present,
            ask: message.ask,
        },
    }
}

impl Stepped {
    fn breaks(&mut self, invariant: Invariant) {
        self.broken = self.broken.or(Some(invariant));
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Acquired { grant, .. } => {
                let token = small(grant.token.number());
                if self.process.open != 0 {
                    self.breaks(Invariant::TermOnce);
                }
                if self.process.left == token {
                    self.breaks(Invariant::NeverTakenUpAgain);
                }
                self.process.open = token;
                self.process.work = Some(Work {
                    token,
                    phase: Phase::Unclaimed,
                });
            }
            Event::Ended { token, cause, .. } => {
                if self.process.open != small(token.number()) {
                    self.breaks(Invariant::TermOnce);
                }
                self.process.open = 0;
                match cause {
                    Cause::Succeeded { .. } => self.reached.add(Milestone::ToldOfSuccessor),
                    Cause::Deadline(_) => self.reached.add(Milestone::EndedAtDeadline),
                    Cause::GivenBack | Cause::Vanished | Cause::NoProgress(_) | Cause::MaxHold(_) => {}
                }
            }
            Event::AskedToStepDown { .. } => self.reached.add(Milestone::HandedOverOnDemand),
            Event::Renewed { .. } => self.reached.add(Milestone::Renewed),
            Event::Departed {
                departure: Departure::Answered(_),
                ..
            } => self.reached.add(Milestone::Departed),
            Event::Departed { .. }
            | Event::Standby { .. }
            | Event::AttemptFailed { .. }
            | Event::CampaignEnded { .. }
            | Event::Withdrawn { .. }
            | Event::RenewalFailed { .. }
            | Event::Doubted { .. }
            | Event::Reassured { .. }
            | Event::Stuck { .. }
            | Event::ReleaseFailed { .. } => {}
        }
    }

    fn request(&mut self, request: &Request) {
        let Some(ask) = Ask::read(&request.operation) else {
            self.breaks(Invariant::RequestsAreItsOwn);
            return;
        };
        if let Ask::Release { token, .. } = ask {
            let believes = self.process.engine.authority(&lease_name(), NOW) != Authority::None;
            if believes || self.process.work.is_some_and(|work| work.token == token) {
                self.breaks(Invariant::ReleasedAfterWork);
            }
            self.process.left = token;
        }
        self.process.live.push(Live {
            id: request.id,
            ask,
            answer: None,
        });
    }
}

/// Every way in which messages that nobody waits for may be lost or stay, in addition to those that are late.
pub(super) fn kept(configuration: &Configuration, late: &[Late], given_up: &[Late]) -> Vec<Vec<Late>> {
    let mut ways = vec![late.to_vec()];
    for message in given_up {
        let can_stay = match message {
            Late::Request { .. } => true,
            // Only these two could make anybody believe longer.
            Late::Answer { answer, .. } => {
                configuration.has(Feature::LateReplies)
                    && matches!(answer, Answer::Granted { .. } | Answer::Extended { .. })
            }
        };
        if !can_stay {
            continue;
        }
        for index in 0..ways.len() {
            if ways[index].len() < configuration.late_max {
                let mut with = ways[index].clone();
                with.push(*message);
                ways.push(with);
            }
        }
    }
    ways
}
