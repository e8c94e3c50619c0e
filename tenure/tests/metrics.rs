//! What is exported, documented, drawn and alerted on is one list.
use crate::harness::counted::{counted, number};
use crate::harness::{Site, pass_on, soon, timing};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tenure::contract::{Acquire, Acquired, Answer, Fault};
use tenure::metrics::{METRICS, Metric, MetricKind};
use tenure::{Election, Fairness, LeaseStore, LockManager, SharedStore, StoreError};
use tenure_testkit::eventually_async;

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
         Over OTLP, Prometheus appends `_total` to the names of counters, unless its `translation_strategy` says otherwise; the\n\
         alerts and the dashboard take both names.\n\n\
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
    let is = |word: &str, metric: &Metric| {
        let part = word.strip_prefix(metric.name);
        let is_histogram = metric.kind == MetricKind::Histogram;
        part.is_some_and(|part| {
            part.is_empty() || is_histogram && ["_bucket", "_sum", "_count"].contains(&part)
        })
    };
    for word in &used {
        assert!(
            METRICS.iter().any(|metric| is(word, metric)),
            "{word} is exported by nobody"
        );
    }
    for metric in METRICS {
        assert!(
            used.iter().any(|word| is(word, metric)),
            "{} is shown nowhere",
            metric.name
        );
    }
}

/// Over OTLP a counter has another name than where it is scraped.
#[test]
fn dashboard_and_alerts_look_for_a_counter_by_both_of_its_names() {
    for file in ["alerts.yaml", "grafana.json"] {
        let text = std::fs::read_to_string(deploy(file)).unwrap();
        let text = text.replace("\\\"", "\"");
        for counter in METRICS.iter().filter(|metric| metric.kind == MetricKind::Counter) {
            for (at, _) in text.match_indices(counter.name) {
                let (before, after) = (&text[..at], &text[at + counter.name.len()..]);
                let is_whole = !after.starts_with('_') && !before.ends_with('_');
                let is_asked_for = after.starts_with(['{', '[', '(']);
                let has_both = before.ends_with("{__name__=~\"") && after.starts_with("(_total)?\"");
                assert!(!is_whole || !is_asked_for || has_both, "{file}: {}", counter.name);
            }
        }
    }
}

/// A real store that no attempt reaches.
struct Unreachable {
    inner: SharedStore,
}

impl LeaseStore for Unreachable {
    pass_on!(traits, renew, release, ask, get, watch, list, examine, run_beside);

    fn acquire<'a>(&'a self, _request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        let outage = StoreError::not_applied(Fault::Unreachable, "an outage");
        Box::pin(std::future::ready(Err(outage)))
    }
}

/// A real store in which the first attempts at places in queues fail.
struct WithoutPlaces {
    inner: SharedStore,
    fails: AtomicU64,
}

impl LeaseStore for WithoutPlaces {
    pass_on!(traits, renew, release, ask, get, watch, list, examine, run_beside);

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        let is_place = request.name.as_str().contains("/candidates/");
        let left = |left: u64| left.checked_sub(1);
        if is_place && self.fails.fetch_update(SeqCst, SeqCst, left).is_ok() {
            // A fault that no other test of this program counts for locks.
            let failed = StoreError::unknown(Fault::Full, "no place");
            return Box::pin(std::future::ready(Err(failed)));
        }
        self.inner.acquire(request)
    }
}

/// Else whoever waits in order would have failed more often than he has tried.
#[tokio::test]
async fn a_place_that_was_not_had_is_no_failure_of_a_lock() {
    let counted = counted();
    let site = Site::new();
    let store = std::sync::Arc::new(WithoutPlaces {
        inner: site.store(),
        fails: AtomicU64::new(2),
    });
    let manager = LockManager::builder(store.clone()).fairness(Fairness::Fair);
    let manager = manager.build().unwrap();
    let mut lock = soon("the lock", manager.lock("counted/7")).await.unwrap();
    soon("its release", lock.release()).await;
    assert_eq!(store.fails.load(SeqCst), 0, "no place failed");
    let failures = "lease_acquisition_failures{lease=\"*\",reason=\"full\"}";
    assert_eq!(number(&counted, failures), 0, "{}", counted.render());
}

#[tokio::test]
async fn a_store_that_nobody_asks_any_more_is_not_told_to_be_unreachable() {
    let counted = counted();
    let site = Site::new();
    let inner = site.store();
    let election = Election::builder("asked-once", std::sync::Arc::new(Unreachable { inner }))
        .timing(timing())
        .build()
        .unwrap();
    let gauge = || {
        let line = "lease_store_unreachable_since_timestamp_seconds{lease=\"asked-once\"} ";
        let told = counted.render();
        let value = told.lines().find_map(|told| told.strip_prefix(line))?;
        Some(value.parse::<f64>().unwrap())
    };
    let is_told = async || gauge() > Some(0.0);
    let patience = Duration::from_secs(20);
    tokio::select! {
        outcome = election.campaign() => panic!("{outcome:?}"),
        () = eventually_async(patience, "an outage is told of", is_told) => {}
    }
    // Nobody campaigns any more; the election is there for the next time.
    eventually_async(patience, "it is told of no more", async || gauge() == Some(0.0)).await;
    drop(election);
}
