//! What is exported, documented, drawn and alerted on is one list.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tenure::metrics::{METRICS, MetricKind};

/// Set, the documentation is written anew instead of being compared.
const WRITE: &str = "TENURE_WRITE_DOCS";

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file)
}

fn documentation() -> String {
    let mut text = String::from(
        "# The metrics of Tenure\n\n\
         `lease` is the name of an election's lease, or `*` for all locks of a process together. Every other label has a few\n\
         fixed values. Where to look first: [alerts.yaml](alerts.yaml), [grafana.json](grafana.json).\n\n\
         This page is written by `TENURE_WRITE_DOCS=1 cargo test -p tenure --features metrics metrics`, from\n\
         `tenure::metrics::METRICS`.\n\n\
         | name | kind | labels | what it tells |\n|---|---|---|---|\n",
    );
    for metric in METRICS {
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let labels = metric.labels.join(", ");
        writeln!(
            text,
            "| `{}` | {kind} | {labels} | {} |",
            metric.name, metric.help
        )
        .unwrap();
    }
    text
}

#[test]
fn the_documentation_is_what_the_program_exports() {
    let path = deploy("METRICS.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, documentation()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, documentation(), "write it anew: see its head");
}

/// The names of metrics in a text: whatever begins as they do.
fn named(text: &str) -> Vec<&str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("lease_") || word.starts_with("leader_"))
        .collect()
}

#[test]
fn dashboard_and_alerts_use_every_metric_and_no_other() {
    let texts = ["alerts.yaml", "grafana.json"].map(|file| std::fs::read_to_string(deploy(file)).unwrap());
    let used: Vec<&str> = texts.iter().flat_map(|text| named(text)).collect();
    let is = |word: &str, name: &str| word == name || word == format!("{name}_bucket");
    for word in &used {
        assert!(
            METRICS.iter().any(|metric| is(word, metric.name)),
            "{word} is exported by nobody"
        );
    }
    for metric in METRICS {
        assert!(
            used.iter().any(|word| is(word, metric.name)),
            "{} is shown nowhere",
            metric.name
        );
    }
}
