//! Chance as a function of a seed: the only source of it in the simulator.

/// A stream of chance that is a function of its seed.
///
/// The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014):
/// one addition and three multiplications a number, and any two streams may be split off by a key.
#[derive(Clone, Copy, Debug)]
pub struct Chance(u64);

/// The finaliser of SplitMix64: every bit of the result depends on every bit of `number`.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Chance {
    /// The stream of `seed` for one purpose. Streams of different purposes do not disturb each other, so that
    /// one draw more or less in one place leaves every other place as it was.
    #[must_use]
    pub fn of(seed: u64, purpose: u64) -> Self {
        Self(mix(seed ^ mix(purpose)))
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        number
    }

    /// A number of `0 .. bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.roll()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(u64::MAX)
    }

    /// A number of `low ..= high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Whether something happens that does so this often in a thousand times.
    pub fn per_mille(&mut self, times: u64) -> bool {
        self.below(1000) < times
    }

    /// One of these, by their weights.
    ///
    /// # Panics
    /// Without any weight.
    pub fn weighted<T: Copy>(&mut self, choices: &[(T, u64)]) -> T {
        let whole: u64 = choices.iter().map(|(_, weight)| weight).sum();
        let mut rest = self.below(whole);
        for (choice, weight) in choices {
            if rest < *weight {
                return *choice;
            }
            rest -= weight;
        }
        choices.last().expect("at least one choice").0
    }
}
