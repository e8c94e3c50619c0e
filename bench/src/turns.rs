//! Two that are compared, taking turns.

use crate::figures::Samples;
use std::time::Instant;

/// So many rounds of each, after some that are not counted; they are told the number of the round. They also
/// take turns to be the first: what one leaves to be done, in a log or on a disk, falls to the other.
pub async fn taking_turns(
    rounds: u32,
    warm_up: u32,
    mut one: impl AsyncFnMut(u32),
    mut other: impl AsyncFnMut(u32),
) -> (Samples, Samples) {
    let (mut ones, mut others) = (Samples::default(), Samples::default());
    for round in 0..rounds + warm_up {
        if round == warm_up {
            (ones, others) = (Samples::default(), Samples::default());
        }
        if round.is_multiple_of(2) {
            timed(&mut ones, one(round)).await;
            timed(&mut others, other(round)).await;
        } else {
            timed(&mut others, other(round)).await;
            timed(&mut ones, one(round)).await;
        }
    }
    (ones, others)
}

/// Adds how long this takes.
pub async fn timed(samples: &mut Samples, turn: impl Future<Output = ()>) {
    let start = Instant::now();
    turn.await;
    samples.add(start.elapsed());
}
