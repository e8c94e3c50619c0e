use std::time::Duration;

/// A stream of chance that is a function of its seed: part of the engine's state, so that a trace replays.
///
/// The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
/// Jitter needs no more; nothing secret is drawn from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn state(self) -> u64 {
        self.0
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of 256ths; nothing is drawn from the stream.
    pub(super) fn part(mut self) -> u8 {
        self.roll().to_be_bytes()[0]
    }

    /// A duration between `low` and `high`, both possible.
    pub(super) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let width = high.saturating_sub(low).as_nanos() + 1;
        let part = (u128::from(self.roll()) * width) >> 64;
        low + Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX))
    }
}
