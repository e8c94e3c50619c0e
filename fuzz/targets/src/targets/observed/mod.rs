//! The adaptor for stores that only compare and swap: rounds of several processes, each with a clock of its
//! own, interleaved in any way over a store that lags, loses answers, applies late and fails.

mod play;
mod process;
mod shelf;

use super::choices::Choices;
use crate::Target;
use play::Play;

/// This target.
pub const TARGET: Target = Target {
    name: "observed",
    promise: "no two believe in one lease, tokens rise, rounds end, and a damaged record breaks nothing",
    judge,
    dictionary: &[],
};

/// Most steps of one play: enough for several take-overs.
const STEPS_MAX: usize = 300;

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    let mut play = Play::new(&mut choices);
    for _ in 0..STEPS_MAX {
        if choices.is_empty() {
            break;
        }
        play.step(&mut choices);
    }
}
