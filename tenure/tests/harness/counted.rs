//! What this program's elections and lock managers count.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::sync::OnceLock;

/// They count on threads of their own, so it is for the whole program: leases of a test that looks at it have
/// names of their own.
pub fn counted() -> PrometheusHandle {
    static COUNTED: OnceLock<PrometheusHandle> = OnceLock::new();
    let install = || {
        let recorder = PrometheusBuilder::new().build_recorder();
        let counted = recorder.handle();
        metrics::set_global_recorder(recorder).expect("nobody else of this program sets one");
        counted
    };
    COUNTED.get_or_init(install).clone()
}

/// The whole number in a line, 0 without the line.
pub fn number(counted: &PrometheusHandle, line: &str) -> u64 {
    let told = counted.render();
    let number = told.lines().find_map(|told| told.strip_prefix(line));
    number.map_or(0, |number| number.trim().parse().unwrap())
}
