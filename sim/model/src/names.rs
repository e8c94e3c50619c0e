//! The two visitors over an engine's numbers: one counts what is in use, one gives new names.

use crate::local::NOW;
use std::time::Duration;
use tenure_core::{Attempt, FencingToken, Moment, Rename, StoreError};

/// A state of the engine's dice whose next two draws are the shortest possible.
///
/// The dice only decide how long a pause is. With the shortest one an engine may act at its next step, and
/// the model lets a step be late by any time, and a hint, too: so the longer pauses are explored as well. An
/// engine with this seed beats in the phase of all others.
pub(crate) const SHORTEST_PAUSES: u64 = 0x0db4_e267_b476_2ab2;

/// The token, or the attempt, of a late message about a term that is over for ever, or that nobody looks at.
/// It is in no order with others, and equals none of them.
pub(crate) const STALE: u8 = 0;
/// What [`STALE`] is in a real request: more than any other number of the model.
const STALE_NUMBER: u64 = 1000;
/// The least token, or attempt, that counts.
const FIRST: u8 = 1;

/// Which small numbers are in use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Ranks(pub(crate) u32);

impl Ranks {
    pub(crate) fn add(&mut self, number: u8) {
        self.0 |= 1_u32 << number;
    }

    /// Adds a token or an attempt, unless it is none.
    pub(crate) fn add_name(&mut self, number: u8) {
        if number != STALE {
            self.add(number);
        }
    }

    pub(crate) fn contains(self, number: u8) -> bool {
        self.0 & (1_u32 << number) != 0
    }

    /// How many numbers in use are smaller.
    pub(crate) fn rank(self, number: u8) -> u8 {
        u8::try_from((self.0 & ((1_u32 << number) - 1)).count_ones()).expect("at most 32")
    }

    /// The new name of a token or an attempt; none stays none.
    pub(crate) fn name(self, number: u8) -> u8 {
        if number == STALE {
            STALE
        } else {
            self.rank(number) + FIRST
        }
    }

    /// Whether every token or attempt in use has the name that it would get.
    pub(crate) fn has_no_gap(self) -> bool {
        let shifted = self.0 >> FIRST;
        shifted & (shifted + 1) == 0
    }
}

/// The number of a small name: ranks never exceed 31, since a state refers to few terms and attempts.
pub(crate) fn small(number: u64) -> u8 {
    let number = u8::try_from(number).unwrap_or(u8::MAX);
    assert!(
        number < 32,
        "more than 31 names in one state: a bound of the model is wrong"
    );
    number
}

/// Counts the numbers that an engine uses, and changes none.
#[derive(Default)]
pub(crate) struct Census {
    pub(crate) tokens: Ranks,
    pub(crate) attempts: Ranks,
    pub(crate) requests: Ranks,
}

impl Rename for Census {
    fn due(&mut self, moment: Moment) -> Moment {
        moment
    }
    fn since(&mut self, moment: Moment) -> Moment {
        moment
    }
    fn token(&mut self, token: FencingToken) -> FencingToken {
        self.tokens.add_name(small(token.number()));
        token
    }
    fn attempt(&mut self, attempt: Attempt) -> Attempt {
        self.attempts.add_name(small(attempt.number()));
        attempt
    }
    fn request(&mut self, number: u64) -> u64 {
        self.requests.add(small(number));
        number
    }
    fn dice(&mut self, state: u64) -> u64 {
        state
    }
    fn failures(&mut self, failures: u32) -> u32 {
        failures
    }
    fn reported(&mut self, token: FencingToken) -> Option<FencingToken> {
        Some(token)
    }
    fn error(&mut self, error: StoreError) -> Option<StoreError> {
        Some(error)
    }
}

/// Gives new names. What is in the past, or only for people, is forgotten.
pub(crate) struct Names {
    /// How far the clock moves: moments are told relative to [`NOW`].
    pub(crate) passed: Duration,
    /// How long ago a moment may be and still count: no answer is trusted for longer.
    pub(crate) horizon: Duration,
    /// The tokens in use, if they are to be numbered anew.
    pub(crate) tokens: Option<Ranks>,
    /// The attempts in use, if they are to be numbered anew.
    pub(crate) attempts: Option<Ranks>,
    /// The requests in use, if they are to be numbered anew.
    pub(crate) requests: Option<Ranks>,
}

impl Rename for Names {
    fn due(&mut self, moment: Moment) -> Moment {
        moment.before(self.passed).max(NOW)
    }
    fn since(&mut self, moment: Moment) -> Moment {
        moment.before(self.passed).max(NOW.before(self.horizon))
    }
    fn token(&mut self, token: FencingToken) -> FencingToken {
        match self.tokens {
            Some(ranks) => token_of(ranks.name(small(token.number()))),
            None => token,
        }
    }
    fn attempt(&mut self, attempt: Attempt) -> Attempt {
        match self.attempts {
            Some(ranks) => attempt_of(ranks.name(small(attempt.number()))),
            None => attempt,
        }
    }
    fn request(&mut self, number: u64) -> u64 {
        match self.requests {
            Some(ranks) => u64::from(ranks.rank(small(number))),
            None => number,
        }
    }
    fn dice(&mut self, _state: u64) -> u64 {
        SHORTEST_PAUSES
    }
    fn failures(&mut self, failures: u32) -> u32 {
        // With the shortest pauses, the second failure in a row waits as long as every later one.
        failures.min(1)
    }
    fn reported(&mut self, _token: FencingToken) -> Option<FencingToken> {
        None
    }
    fn error(&mut self, _error: StoreError) -> Option<StoreError> {
        None
    }
}

pub(crate) fn token_of(rank: u8) -> FencingToken {
    FencingToken::new(number_of(rank)).expect("ranks of tokens begin at 1")
}

pub(crate) fn attempt_of(rank: u8) -> Attempt {
    Attempt::new(number_of(rank)).expect("ranks of attempts begin at 1")
}

fn number_of(rank: u8) -> u64 {
    match rank {
        STALE => STALE_NUMBER,
        _ => u64::from(rank),
    }
}

#[cfg(test)]
mod tests {
    use crate::configuration::timing;
    use crate::local::{Local, NOW, lease_name};
    use crate::message::{Ask, failure};
    use std::time::Duration;
    use tenure_core::{Certainty, Command, Input, Note, WatchEvent};

    #[test]
    fn the_dice_of_the_model_draw_the_shortest_pauses() {
        let mut engine = Local::started(Vec::new()).process.expect("it runs").engine;
        let campaign = Command::Campaign {
            name: lease_name(),
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        };
        let request = engine.step(NOW, Input::Command(campaign)).requests.remove(0).id;
        let reply = failure(Ask::Acquire { attempt: 1 }, Certainty::Unknown);
        let wake = engine.step(NOW, Input::Answer { request, reply }).wake;
        // The back-off is drawn between the retry interval and much more.
        assert_eq!(wake.map(|wake| wake.at), Some(NOW.after(timing().retry_every())));
    }

    #[test]
    fn a_hint_that_a_lease_is_vacant_is_followed_at_once() {
        let local = Local::started(Vec::new());
        let mut engine = local.process.clone().expect("it runs").engine;
        let campaign = Command::Campaign {
            name: lease_name(),
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        };
        let request = engine.step(NOW, Input::Command(campaign)).requests.remove(0).id;
        let held = crate::message::Answer::Held {
            token: 1,
            remaining_ticks: 2,
        };
        let reply = held.reply();
        assert!(
            engine
                .step(NOW, Input::Answer { request, reply })
                .requests
                .is_empty()
        );
        let mut process = local.process.expect("it runs");
        process.engine = engine;
        let local = Local {
            process: Some(process),
            late: Vec::new(),
        };
        let mut engine = local.normal(Duration::ZERO).process.expect("it runs").engine;
        let vacated = WatchEvent::Changed {
            name: lease_name(),
            change: tenure_core::Change::Vacated,
            token: None,
        };
        assert_eq!(engine.step(NOW, Input::Watch(vacated)).requests.len(), 1);
    }
}
