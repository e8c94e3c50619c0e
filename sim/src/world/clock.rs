//! A clock that runs too fast or too slow, and may be set.

/// Parts of a million.
const MILLION: i64 = 1_000_000;

/// A clock: what it shows is a straight line over real time, until its rate changes or it is set.
///
/// Real time and what the clock shows are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    anchor_real: u64,
    anchor_shown: u64,
    rate_ppm: i64,
}

impl Clock {
    pub(crate) fn new(shown: u64, rate_ppm: i64) -> Self {
        Self {
            anchor_real: 0,
            anchor_shown: shown,
            rate_ppm,
        }
    }

    /// What it shows at `real`, which is never before its last change.
    pub(crate) fn shown(&self, real: u64) -> u64 {
        let passed = real.saturating_sub(self.anchor_real);
        let error = (passed.cast_signed() * self.rate_ppm).div_euclid(MILLION);
        self.anchor_shown + passed.saturating_add_signed(error)
    }

    /// The first real moment at which it shows `shown` or more; never before its last change.
    pub(crate) fn real_at(&self, shown: u64) -> u64 {
        let Some(wanted) = shown.checked_sub(self.anchor_shown) else {
            return self.anchor_real;
        };
        let scaled = u128::from(wanted) * u128::from(MILLION.unsigned_abs());
        let rate = u128::from((MILLION + self.rate_ppm).unsigned_abs());
        let guess = u64::try_from(scaled / rate).unwrap_or(u64::MAX / 4);
        let mut real = self.anchor_real.saturating_add(guess);
        while real > self.anchor_real && self.shown(real - 1) >= shown {
            real -= 1;
        }
        while self.shown(real) < shown {
            real += 1;
        }
        real
    }

    pub(crate) fn set_rate(&mut self, real: u64, rate_ppm: i64) {
        self.anchor_shown = self.shown(real);
        self.anchor_real = real;
        self.rate_ppm = rate_ppm;
    }

    /// Sets it forward or back.
    pub(crate) fn step(&mut self, real: u64, by: i64) {
        self.anchor_shown = self.shown(real).saturating_add_signed(by);
        self.anchor_real = real;
    }
}
