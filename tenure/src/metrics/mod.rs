//! What an election or a lock manager is doing, for the [`metrics`](https://docs.rs/metrics) crate.
//!
//! Nothing is recorded unless the program has installed a recorder. [`METRICS`] says what there is; [`describe`] tells it to
//! the recorder.

mod list;
mod meter;

pub use list::{METRICS, Metric, MetricKind};
pub(crate) use meter::{About, Meter};

use ::metrics::{describe_counter, describe_gauge, describe_histogram};

/// Tells the installed recorder what each metric means. Once, after the recorder was installed.
pub fn describe() {
    for metric in METRICS {
        match metric.kind {
            MetricKind::Counter => describe_counter!(metric.name, metric.help),
            MetricKind::Gauge => describe_gauge!(metric.name, metric.help),
            MetricKind::Histogram => describe_histogram!(metric.name, metric.help),
        }
    }
}
