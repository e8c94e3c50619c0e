//! What an engine is told, and when: decoded from the input with an eye on what the engine waits for, so
//! that most streams lead somewhere.

use super::super::choices::Choices;
use super::answers::{duration, misfitting, reply, token};
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::time::Duration;
use tenure_core::{
    Actions, Attempt, Candidate, CandidateId, Change, Command, Engine, FencingToken, Incarnation, Input,
    LeaseName, Moment, Note, Operation, Request, RequestId, Timing, WatchEvent,
};

/// Most requests that a stream remembers, for answers to old ones.
const REQUESTS_MAX: usize = 48;

/// What was learnt from the engine so far.
#[derive(Default)]
pub(super) struct Stream {
    requests: Vec<(Moment, Request)>,
    wake: Option<Moment>,
    last_token: Option<FencingToken>,
    last_attempt: Option<Attempt>,
}

/// The words that an input may use.
pub(super) struct Words {
    pub(super) names: Vec<LeaseName>,
    pub(super) candidates: Vec<Candidate>,
    strangers: Vec<RequestId>,
}

impl Stream {
    pub(super) fn learn(&mut self, now: Moment, actions: &Actions) {
        self.wake = actions.wake.map(|wake| wake.at);
        for request in &actions.requests {
            if let Operation::Acquire(acquire) = &request.operation {
                self.last_attempt = Some(acquire.attempt);
            }
            self.requests.push((now, request.clone()));
        }
        let surplus = self.requests.len().saturating_sub(REQUESTS_MAX);
        self.requests.drain(..surplus);
    }

    /// Moments never decrease; beyond that, any.
    pub(super) fn next_moment(&self, choices: &mut Choices<'_>, now: Moment, timing: &Timing) -> Moment {
        let nanosecond = Duration::from_nanos(1);
        let next = match choices.byte() % 16 {
            0..=4 => now,
            5 | 6 => self.wake.unwrap_or(now),
            7 => self.wake.unwrap_or(now).before(nanosecond),
            8 => self.wake.unwrap_or(now).after(nanosecond),
            9 => now.after(Duration::from_millis(choices.byte().into())),
            10 => now.after(timing.ttl().duration() * u32::from(choices.byte()) / 128),
            11 => now.after(timing.request_timeout() * u32::from(choices.byte()) / 128),
            12 => self
                .requests
                .last()
                .map_or(now, |(_, request)| request.give_up_at),
            13 => now.after(timing.renew_every()),
            14 => now.after(nanosecond),
            _ => now.after(duration(choices)),
        };
        next.max(now)
    }

    pub(super) fn next_input(&mut self, choices: &mut Choices<'_>, now: Moment, engine: &Engine) -> Input {
        match choices.byte() % 16 {
            0 | 1 => Input::Tick,
            2..=8 => self.answer(choices, now, engine.timing()),
            9 | 10 => Input::Watch(self.watch_event(choices, engine)),
            _ => Input::Command(self.command(choices, now, engine)),
        }
    }

    fn answer(&mut self, choices: &mut Choices<'_>, now: Moment, timing: &Timing) -> Input {
        let Some(newest) = self.requests.len().checked_sub(1) else {
            return Input::Answer {
                request: *choices.pick(&words().strangers),
                reply: misfitting(choices),
            };
        };
        let (sent_at, request) = match choices.byte() % 8 {
            0..=4 => &self.requests[newest],
            5 | 6 => &self.requests[newest - choices.below(newest + 1)],
            _ => {
                let request = *choices.pick(&words().strangers);
                return Input::Answer {
                    request,
                    reply: misfitting(choices),
                };
            }
        };
        let sufficient = |ttl| now < sent_at.after(timing.trust(ttl));
        let (operation, last_attempt) = (&request.operation, self.last_attempt);
        let reply = reply(
            choices,
            operation,
            &sufficient,
            &mut self.last_token,
            last_attempt,
        );
        Input::Answer {
            request: request.id,
            reply,
        }
    }

    fn watch_event(&self, choices: &mut Choices<'_>, engine: &Engine) -> WatchEvent {
        if choices.once_in(5) {
            return WatchEvent::Gap;
        }
        let name = choices.pick(&words().names).clone();
        let change = *choices.pick(&[Change::Vacated, Change::Taken, Change::Asked]);
        let token = (!choices.once_in(4)).then(|| self.token_of(choices, engine, &name));
        WatchEvent::Changed { name, change, token }
    }

    fn command(&self, choices: &mut Choices<'_>, now: Moment, engine: &Engine) -> Command {
        let kind = choices.byte() % 8;
        let name = choices.pick(&words().names).clone();
        let token = match kind {
            0..=3 => return campaign_or_withdraw(choices, kind, name),
            _ => self.token_of(choices, engine, &name),
        };
        match kind {
            4 => Command::StepDown { name, token },
            5 => Command::WorkEnded { name, token },
            6 => work_ended_or_handed_on(choices, name, token),
            _ => {
                let which = choices.byte();
                let at = match which % 3 {
                    // So that the inputs of before this command was there still mean what they meant.
                    _ if which >= 240 => return Command::Extend { name, token },
                    0 => now,
                    1 => now.before(duration(choices)),
                    _ => now.after(duration(choices)),
                };
                Command::Progress { name, token, at }
            }
        }
    }

    /// The token of the term that the engine believes in, or one beside it.
    fn token_of(&self, choices: &mut Choices<'_>, engine: &Engine, name: &LeaseName) -> FencingToken {
        match (choices.byte() % 8, engine.belief(name)) {
            (0..=4, Some(belief)) => belief.token,
            _ => token(choices, self.last_token),
        }
    }
}

/// One more choice than there was once; inputs of before are as good as any.
fn work_ended_or_handed_on(choices: &mut Choices<'_>, name: LeaseName, token: FencingToken) -> Command {
    if choices.once_in(2) {
        return Command::WorkEnded { name, token };
    }
    Command::HandOn {
        name,
        token,
        note: Note::default(),
        progress_within: choices.once_in(4).then(|| duration(choices)),
        max_hold: choices.once_in(4).then(|| duration(choices)),
    }
}

fn campaign_or_withdraw(choices: &mut Choices<'_>, kind: u8, name: LeaseName) -> Command {
    if kind == 3 {
        return Command::Withdraw { name };
    }
    let max_hold = (kind == 1).then(|| duration(choices));
    let gated = kind == 2 || max_hold.is_some() && choices.once_in(2);
    let progress_within = gated.then(|| duration(choices));
    Command::Campaign {
        name,
        note: Note::default(),
        progress_within,
        max_hold,
    }
}

pub(super) fn words() -> &'static Words {
    static WORDS: OnceLock<Words> = OnceLock::new();
    WORDS.get_or_init(|| {
        let name = |text: &str| LeaseName::new(text).expect("a plain word is a name");
        let candidate = |id: &str, bits| Candidate {
            id: CandidateId::new(id).expect("a plain word is an id"),
            incarnation: Incarnation::from_bits(bits),
        };
        Words {
            names: ["a", "b", "c"].map(name).to_vec(),
            candidates: vec![
                candidate("me", 1),
                candidate("other", 2),
                candidate("me", 3),
                candidate("third", 1),
            ],
            strangers: strangers(candidate("decoy", 9)),
        }
    })
}

/// Request numbers that an engine has not given, or gave to another request: those of another engine.
pub(super) fn strangers(candidate: Candidate) -> Vec<RequestId> {
    /// How many.
    const STRANGERS: usize = 64;
    let mut decoy = Engine::new(candidate, Timing::batch(), NonZeroUsize::MIN, 0);
    let mut numbers = Vec::new();
    for index in 0..STRANGERS {
        let name = LeaseName::new(format!("decoy-{index}")).expect("a plain word is a name");
        let command = Command::Campaign {
            name,
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        };
        let actions = decoy.step(Moment::ZERO, Input::Command(command));
        numbers.extend(actions.requests.iter().map(|request| request.id));
    }
    numbers
}
