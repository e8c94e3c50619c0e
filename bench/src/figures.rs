//! Percentiles, and a figure beside its target.

use std::time::Duration;

/// Measured durations.
#[derive(Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn add(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest sample that at least this part of all is not above.
    pub fn percentile(&self, percent: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank among at most thousands"
        )]
        let rank = ((percent / 100.0) * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
    }
}

/// Prints one figure, and whether it keeps its target.
pub fn judge(figure: &str, value: f64, target: f64, unit: &str) {
    let verdict = if value <= target { "kept" } else { "MISSED" };
    println!("{figure}: {value:.3} {unit} (target: at most {target:.3} {unit}) {verdict}");
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
