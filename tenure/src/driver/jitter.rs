use crate::identity::random_bits;
use std::time::Duration;

/// A part of `most`, drawn anew each time.
pub(super) fn jitter(most: Duration) -> Duration {
    let bits = u32::try_from(random_bits() & u128::from(u32::MAX)).expect("32 bits");
    most.mul_f64(f64::from(bits) / f64::from(u32::MAX))
}
