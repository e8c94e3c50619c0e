//! Chance is a published stream of its seed, so that a trace recorded today replays with every later version.
use crate::harness::*;
use std::num::NonZeroUsize;
use std::time::Duration;
use tenure_core::*;

/// How much later than the remaining time a standby of this seed and spread asks again.
fn delay(seed: u64, ttl: Duration, spread: Duration) -> Duration {
    let timing = TimingOptions {
        spread: Some(spread),
        ..TimingOptions::new(ttl)
    };
    let mut engine = Engine::new(me(), timing.check().unwrap(), NonZeroUsize::MIN, seed);
    let now = Moment::from_millis(1_000_000);
    let campaign = Input::Command(Command::Campaign {
        name: job(),
        note: Note::default(),
        progress_within: None,
        max_hold: None,
    });
    let request = only(engine.step(now, campaign).requests).id;
    let held = Acquired::Held(lease_of(other(), 6, seconds(1.0)));
    let reply = Reply::Acquired(Ok(held));
    let wake = engine.step(now, Input::Answer { request, reply }).wake.unwrap();
    wake.at.since(now) - seconds(1.0)
}

#[test]
fn the_stream_is_that_of_splitmix64() {
    // First outputs for these seeds, from the reference implementation's published test vectors (seed
    // 1234567, Rosetta Code, "Pseudo-random numbers/Splitmix64") and of Java's SplittableRandom (seed 0).
    for (seed, first) in [
        (1_234_567, 6_457_827_717_110_365_317),
        (0, 0xe220_a839_7b1d_cdaf_u64),
    ] {
        let spread = Duration::from_secs(6 * 3_600);
        let width = (spread / 2).as_nanos() + 1;
        let part = (u128::from(first) * width) >> 64;
        let expected = spread / 2 + Duration::from_nanos(u64::try_from(part).unwrap());
        assert_eq!(
            delay(seed, Duration::from_secs(86_400), spread),
            expected,
            "seed {seed}"
        );
    }
}

#[test]
fn both_ends_of_a_range_are_possible() {
    let spread = Duration::from_nanos(2);
    let drawn: Vec<_> = (0..64).map(|seed| delay(seed, seconds(30.0), spread)).collect();
    for end in [spread / 2, spread] {
        assert!(drawn.contains(&end), "{end:?} is never drawn: {drawn:?}");
    }
}
