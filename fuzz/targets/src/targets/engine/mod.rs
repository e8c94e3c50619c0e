//! The election engine: any stream of times and inputs, hostile ones included.

mod answers;
pub mod checker;
mod stream;

use super::choices::Choices;
use crate::Target;
use checker::{Checker, Sight};
use std::num::NonZeroUsize;
use stream::Stream;
use tenure_core::{
    Actions, Candidate, CandidateId, Engine, Incarnation, Input, Moment, Timing, TimingOptions, Ttl,
};

/// This target.
pub const TARGET: Target = Target {
    name: "engine",
    promise: "whatever it is told, each term ends once, belief ends in time, and requests keep their order",
    judge,
    dictionary: &[],
};

/// Most steps of one life: enough for several terms of every name, short enough for many lives a second.
const STEPS_MAX: usize = 200;

/// An engine's life as an input tells it.
pub(super) struct Life {
    pub(super) candidate: Candidate,
    pub(super) timing: Timing,
    pub(super) batch_max: NonZeroUsize,
    pub(super) seed: u64,
    pub(super) engine: Engine,
    now: Moment,
    steps: usize,
    stream: Stream,
}

impl Life {
    pub(super) fn new(choices: &mut Choices<'_>) -> Self {
        let candidate = Candidate {
            id: CandidateId::new("me").expect("a plain word is an id"),
            incarnation: Incarnation::from_bits(1),
        };
        let timing = timing(choices);
        let batch_max = NonZeroUsize::MIN.saturating_add(usize::from(choices.byte() % 4));
        let seed = choices.byte().into();
        let now = match choices.byte() % 4 {
            0 => Moment::from_nanos(choices.number()),
            _ => Moment::from_millis(1_000_000),
        };
        Self {
            engine: Engine::new(candidate.clone(), timing, batch_max, seed),
            candidate,
            timing,
            batch_max,
            seed,
            now,
            steps: 0,
            stream: Stream::default(),
        }
    }

    /// What the engine is told next, and when; `None` where the input ends.
    pub(super) fn next(&mut self, choices: &mut Choices<'_>) -> Option<(Moment, Input)> {
        if choices.is_empty() || self.steps == STEPS_MAX {
            return None;
        }
        self.steps += 1;
        self.now = self.stream.next_moment(choices, self.now, &self.timing);
        Some((self.now, self.stream.next_input(choices, self.now, &self.engine)))
    }

    pub(super) fn learn(&mut self, actions: &Actions) {
        self.stream.learn(self.now, actions);
    }
}

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    let mut life = Life::new(&mut choices);
    let mut twin = life.engine.clone();
    let mut checker = Checker::new(life.candidate.clone(), life.timing, life.batch_max);
    while let Some((now, input)) = life.next(&mut choices) {
        let actions = step(&mut life.engine, &mut checker, now, input.clone());
        assert_eq!(
            actions,
            twin.step(now, input),
            "two engines that are told the same differ"
        );
        life.learn(&actions);
    }
    assert!(life.engine == twin, "two engines that are told the same differ");
    silence(&mut life, &mut checker);
}

fn step(engine: &mut Engine, checker: &mut Checker, now: Moment, input: Input) -> Actions {
    if let Err(violation) = checker.look(now, &|name, at| engine.authority(name, at)) {
        panic!("{violation} (before the step at {now:?} with {input:?})");
    }
    let actions = engine.step(now, input.clone());
    let sight = Sight {
        now,
        input: &input,
        actions: &actions,
        authority: &|name, at| engine.authority(name, at),
        is_idle: engine.is_idle(),
    };
    if let Err(violation) = checker.see(&sight) {
        panic!("{violation} (step at {now:?} with {input:?} gave {actions:?})");
    }
    actions
}

/// After the last input nobody answers any more: every term ends at its deadline, once.
fn silence(life: &mut Life, checker: &mut Checker) {
    // The longest ttl that a store can have granted, and a little.
    let end = life
        .now
        .after(life.timing.trust(Ttl::MAX))
        .after(life.timing.request_timeout());
    let _ = step(&mut life.engine, checker, end, Input::Tick);
}

fn timing(choices: &mut Choices<'_>) -> Timing {
    match choices.byte() % 6 {
        0 | 1 => Timing::batch(),
        2 => Timing::controller(),
        3 => Timing::of(Ttl::MIN),
        4 => Timing::of(Ttl::MAX),
        _ => {
            let ttl = std::time::Duration::from_millis(100 + choices.number() % 100_000);
            let options = TimingOptions {
                renew_every: Some(ttl / (2 + u32::from(choices.byte()))),
                request_timeout: Some(ttl / (2 + u32::from(choices.byte()))),
                grace: Some(ttl / (1 + u32::from(choices.byte()))),
                spread: Some(ttl / (4 + u32::from(choices.byte()))),
                clock_rate_error_ppm: u32::from(choices.byte()) * 400,
                step_allowance: Some(ttl / (1 + u32::from(choices.byte()))),
                ..TimingOptions::new(ttl)
            };
            options.check().unwrap_or_else(|_| Timing::batch())
        }
    }
}
