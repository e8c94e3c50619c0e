//! What an election or a lock manager is doing, for the [`metrics`](https://docs.rs/metrics) crate.
//!
//! Nothing is recorded unless the program has installed a recorder, of version 0.24 of `metrics`: one of
//! another version hears nothing, and nobody is told. [`METRICS`] says what there is; [`describe`] tells it
//! to the recorder. With `metrics-exporter-prometheus` 0.18, once, before the first election or lock manager
//! is built:
//!
//! ```
//! use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
//! use tenure::metrics::{METRICS, MetricKind, describe};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut builder = PrometheusBuilder::new();
//! // Without buckets it makes summaries, and the panels that ask for histograms stay empty.
//! for metric in METRICS.iter().filter(|metric| metric.kind == MetricKind::Histogram) {
//!     builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), metric.buckets())?;
//! }
//! let metrics = builder.install_recorder()?;
//! describe();
//! // What /metrics answers. Where nobody may ask for minutes, call `metrics.run_upkeep()` now and then: what
//! // was measured waits in memory until one of both.
//! let page = metrics.render();
//! # assert!(page.contains("lease_fence_refusals{reason=\"stale\"} 0"), "{page}");
//! # Ok(())
//! # }
//! ```

mod buckets;
pub(crate) mod candidacy;
mod list;
mod meter;

pub use list::{METRICS, Metric, MetricKind};
pub(crate) use meter::{About, Meter};

use ::metrics::{counter, describe_counter, describe_gauge, describe_histogram};
use tenure_core::{FenceError, REFUSALS_METRIC};

/// Tells the installed recorder what each metric means, and that no fence has refused anything yet. Once,
/// after the recorder was installed.
pub fn describe() {
    for metric in METRICS {
        match metric.kind {
            MetricKind::Counter => describe_counter!(metric.name, metric.help),
            MetricKind::Gauge => describe_gauge!(metric.name, metric.help),
            MetricKind::Histogram => describe_histogram!(metric.name, metric.help),
        }
    }
    // Before the first: a series that begins at 1 has not risen, for whoever alerts on a rise.
    for reason in FenceError::REASONS {
        counter!(REFUSALS_METRIC, "reason" => reason).increment(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::PrometheusBuilder;

    #[test]
    fn the_first_refusal_for_each_reason_is_a_rise() {
        let recorder = PrometheusBuilder::new().build_recorder();
        ::metrics::with_local_recorder(&recorder, describe);
        let text = recorder.handle().render();
        for reason in FenceError::REASONS {
            let none = format!("lease_fence_refusals{{reason=\"{reason}\"}} 0\n");
            assert!(text.contains(&none), "{none}{text}");
        }
    }
}
