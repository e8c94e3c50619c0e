//! The buckets of the histograms.

use super::list::{Metric, MetricKind, TERM_SECONDS};

/// A round trip on one machine to the longest ttl that is usual.
const SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0,
];

/// A second to a month.
const SECONDS_OF_TERMS: [f64; 8] = [1.0, 10.0, 60.0, 600.0, 3600.0, 21_600.0, 86_400.0, 2_592_000.0];

impl Metric {
    /// Upper bounds of its buckets, in seconds, as `tenure run` has them and the dashboard in `deploy` wants
    /// them; none where it is no histogram.
    #[must_use]
    pub fn buckets(&self) -> &'static [f64] {
        match self.kind {
            MetricKind::Counter | MetricKind::Gauge => &[],
            MetricKind::Histogram if self.name == TERM_SECONDS => &SECONDS_OF_TERMS,
            MetricKind::Histogram => &SECONDS,
        }
    }
}
