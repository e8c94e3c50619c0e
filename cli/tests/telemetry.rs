//! What a collector is told over OTLP.
//!
//! The collector is the tests' own, made of the protocol's published definitions: a real one is not to be had
//! from the registries that the tests use.

use crate::common::{SOON, Sandbox, exit_code};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::{Span, status::StatusCode};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_testkit::{Process, eventually, free_port};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, async_trait};

/// Everything that was told, and with which keys.
#[derive(Clone, Default)]
struct Told(
    Arc<Mutex<Vec<ExportMetricsServiceRequest>>>,
    Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    Arc<Mutex<Vec<String>>>,
);

/// The header of a key.
const KEY: &str = "x-key";

#[async_trait]
impl MetricsService for Told {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let key = request
            .metadata()
            .get(KEY)
            .map(|key| key.to_str().unwrap().to_owned());
        self.2.lock().unwrap().extend(key);
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[async_trait]
impl TraceService for Told {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.1.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// A collector at this URL, for as long as the runtime lives.
struct Collector {
    url: String,
    told: Told,
    _runtime: tokio::runtime::Runtime,
}

impl Collector {
    fn start() -> Self {
        // Who tells it something before it runs is heard as soon as it does.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let told = Told::default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        drop(entered);
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(MetricsServiceServer::new(told.clone()))
                .add_service(TraceServiceServer::new(told.clone()))
                .serve_with_incoming(TcpIncoming::from(listener)),
        );
        Self {
            url: format!("http://{address}"),
            told,
            _runtime: runtime,
        }
    }

    /// The latest value of a counter or a gauge with this label.
    fn number(&self, name: &str, label: (&str, &str)) -> Option<f64> {
        let told = self.told.0.lock().unwrap();
        let metrics = told
            .iter()
            .rev()
            .flat_map(|request| &request.resource_metrics)
            .flat_map(|resource| &resource.scope_metrics)
            .flat_map(|scope| &scope.metrics);
        let mut named = metrics.filter(|metric| metric.name == name);
        let points = |metric: &metric::Data| match metric {
            metric::Data::Gauge(gauge) => gauge.data_points.clone(),
            metric::Data::Sum(sum) => sum.data_points.clone(),
            _ => Vec::new(),
        };
        named.find_map(|metric| {
            let points = points(metric.data.as_ref()?);
            let point = points.iter().find(|point| has(&point.attributes, label))?;
            Some(match point.value? {
                number_data_point::Value::AsDouble(value) => value,
                number_data_point::Value::AsInt(value) => u32::try_from(value).unwrap().into(),
            })
        })
    }

    /// The upper bounds of a histogram's buckets.
    fn bounds(&self, name: &str) -> Option<Vec<f64>> {
        let told = self.told.0.lock().unwrap();
        let metrics = told
            .iter()
            .flat_map(|request| &request.resource_metrics)
            .flat_map(|resource| &resource.scope_metrics)
            .flat_map(|scope| &scope.metrics);
        let mut named = metrics.filter(|metric| metric.name == name);
        named.find_map(|metric| match metric.data.as_ref()? {
            metric::Data::Histogram(histogram) => {
                Some(histogram.data_points.first()?.explicit_bounds.clone())
            }
            _ => None,
        })
    }

    /// The spans, in the order in which they were told.
    fn spans(&self) -> Vec<Span> {
        let told = self.told.1.lock().unwrap();
        let scopes = told
            .iter()
            .flat_map(|request| &request.resource_spans)
            .flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Whether all that told it have this attribute.
    fn all_have(&self, attribute: (&str, &str)) -> bool {
        let told = self.told.0.lock().unwrap();
        let mut resources = told
            .iter()
            .flat_map(|request| &request.resource_metrics)
            .filter_map(|metrics| metrics.resource.as_ref());
        resources.all(|resource| has(&resource.attributes, attribute))
    }
}

fn has(attributes: &[KeyValue], (key, text): (&str, &str)) -> bool {
    attributes.iter().any(|attribute| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        attribute.key == key && matches!(value, Some(any_value::Value::StringValue(value)) if value == text)
    })
}

/// Starts a candidate that tells the collector often.
fn run(sandbox: &Sandbox, url: &str, ttl: &str, options: &[&str], script: &str) -> Process {
    let timing = ["--ttl", ttl, "--renew", "500ms"];
    let told = [&["run", "--otlp", url, "--candidate", "one"], &timing[..]].concat();
    let work = ["job", "--", "sh", "-c", script];
    let mut command = sandbox.command(&[&told[..], options, &work].concat());
    command.env("OTEL_METRIC_EXPORT_INTERVAL", "200");
    Process::spawn(command).unwrap()
}

/// Tries of an end that the collector is told of: it is waited for it a second, in which a loaded machine may
/// not come to it.
const ENDS_TOLD_MAX: u32 = 4;

#[test]
fn a_collector_is_told_what_the_pages_show_and_how_it_ended() {
    let is_told = (0..ENDS_TOLD_MAX).any(|_| end_is_told());
    assert!(is_told, "no end was told in {ENDS_TOLD_MAX} tries");
}

/// Whether the collector has been told of the end.
fn end_is_told() -> bool {
    let collector = Collector::start();
    let sandbox = Sandbox::new("collector");
    let pages = format!("127.0.0.1:{}", free_port());
    let process = run(
        &sandbox,
        &collector.url,
        "30s",
        &["--metrics", &pages],
        "sleep 300",
    );
    let job = ("lease", "job");
    eventually(SOON, "the leader is told of", || {
        collector.number("leader_status", job) == Some(1.0)
    });
    eventually(SOON, "a renewal is told of", || {
        collector
            .number("lease_renewals", job)
            .is_some_and(|renewals| renewals >= 1.0)
    });
    // One that failed on a busy disk is counted, too.
    let attempts = collector.number("lease_acquisition_attempts", job);
    assert!(attempts.is_some_and(|attempts| attempts >= 1.0), "{attempts:?}");
    let bounds = eventually(SOON, "its buckets", || collector.bounds("lease_renewal_seconds"));
    assert!(
        bounds.first() == Some(&0.001) && bounds.last() == Some(&60.0),
        "{bounds:?}"
    );
    for attribute in [("service.name", "tenure"), ("service.instance.id", "one")] {
        assert!(collector.all_have(attribute), "{attribute:?}");
    }
    process.terminate();
    process.wait_for_exit(SOON).unwrap();
    // The very last is told, whatever the interval.
    collector.number("leader_status", job) == Some(0.0)
        && collector.number("lease_candidates", job) == Some(0.0)
        && collector.number("lease_terms_ended", ("cause", "given_back")) == Some(1.0)
}

/// As OpenTelemetry has them. A collector that wants a key takes nothing without it.
#[test]
fn what_variables_say_of_headers_attributes_and_spans_is_heeded() {
    let collector = Collector::start();
    let sandbox = Sandbox::new("collector-variables");
    let told = ["run", "--otlp", &collector.url, "job", "--", "sleep", "300"];
    let mut command = sandbox.command(&told);
    command
        .env("OTEL_METRIC_EXPORT_INTERVAL", "200")
        .env("OTEL_EXPORTER_OTLP_HEADERS", format!("{KEY}=secret"))
        .env(
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment=blue,service.name=tenure,service.instance.id=i-7",
        )
        .env("OTEL_SERVICE_NAME", "billing")
        .env("OTEL_TRACES_SAMPLER", "always_off");
    let process = Process::spawn(command).unwrap();
    eventually(SOON, "the leader is told of", || {
        collector.number("leader_status", ("lease", "job")) == Some(1.0)
    });
    let keys = collector.told.2.lock().unwrap().clone();
    assert!(
        !keys.is_empty() && keys.iter().all(|key| key == "secret"),
        "{keys:?}"
    );
    for said in [
        ("deployment", "blue"),
        ("service.name", "billing"),
        ("service.instance.id", "i-7"),
    ] {
        assert!(collector.all_have(said), "{said:?}");
    }
    process.terminate();
    process.wait_for_exit(SOON).unwrap();
    assert!(collector.spans().is_empty(), "nobody asked for them");
}

/// In hexadecimal, as in a context.
fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One for each, below the one that the process was started in; the work's own may stand below it.
#[test]
fn a_collector_is_told_of_each_term_as_a_span_that_the_work_can_go_on_from() {
    let collector = Collector::start();
    let sandbox = Sandbox::new("spans");
    let told = [
        "run",
        "--otlp",
        &collector.url,
        "--candidate",
        "one",
        "--grace",
        "1s",
        "--ttl",
        "4s",
    ];
    let start = |lease: &str, script: &str| {
        let work = [lease, "--", "sh", "-c", script];
        let mut command = sandbox.command(&[&told[..], &work].concat());
        command.env(
            "TRACEPARENT",
            "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
        );
        Process::spawn(command).unwrap()
    };
    let (context, spans) = (0..ENDS_TOLD_MAX)
        .find_map(|number| {
            let lease = format!("job-{number}");
            let process = start(&lease, "echo context $TRACEPARENT; exit 3");
            let context = process.wait_for_line("context 00-", SOON).unwrap().text;
            assert_eq!(exit_code(&process), 3);
            // The span of an earlier try may come late.
            let mut spans = collector.spans();
            spans.retain(|span| has(&span.attributes, ("lease", &lease)));
            Some((context, spans)).filter(|(_, spans)| !spans.is_empty())
        })
        .expect("an end that is told");
    assert_eq!(spans.len(), 1, "{spans:?}");
    let span = &spans[0];
    assert_eq!(span.name, "lease.term");
    assert_eq!(hex(&span.trace_id), "0123456789abcdef0123456789abcdef");
    assert_eq!(hex(&span.parent_span_id), "0123456789abcdef");
    assert!(context.contains(&hex(&span.span_id)), "{context}");
    assert!(has(&span.attributes, ("candidate", "one")), "{span:?}");
    assert_eq!(span.status.as_ref().unwrap().code(), StatusCode::Ok);

    // A term that is lost says so, and why. What was before it is told by whoever renews it: if a loaded
    // machine stops that one for all the time from a renewal to the doubt, or from the doubt to the end, it
    // learns of both at once.
    let is_told = (0..LOSSES_MAX).any(|number| {
        let lease = format!("lost-{number}");
        let process = start(&lease, "echo working; sleep 300");
        process.wait_for_line("working", SOON).unwrap();
        let store = rusqlite::Connection::open(sandbox.dir.join("leases.db")).unwrap();
        store.execute_batch("BEGIN IMMEDIATE").unwrap();
        let doubted = process.wait_for_line("leadership is doubtful", SOON);
        drop(store);
        assert_eq!(exit_code(&process), 79);
        if doubted.is_err() {
            return false;
        }
        let spans = collector.spans();
        let is_of_lease = |span: &&Span| has(&span.attributes, ("lease", &lease));
        let Some(lost) = spans.iter().find(is_of_lease) else {
            return false;
        };
        assert_eq!(lost.status.as_ref().unwrap().code(), StatusCode::Error);
        let events: Vec<&str> = lost.events.iter().map(|event| event.name.as_str()).collect();
        ["renewal failed", "doubted"]
            .iter()
            .all(|told| events.contains(told))
    });
    assert!(is_told, "no doubt was told in {LOSSES_MAX} losses");
}

/// Tries of a loss whose doubt is told.
const LOSSES_MAX: u32 = 3;

/// What a silent collector may cost an end, and what a loaded machine may add to it.
const HELD_UP_MAX: Duration = Duration::from_millis(1_000 + 500);

/// Tries of an end that is measured: one on a machine that stands still proves nothing.
const ENDS_MAX: usize = 6;

/// How long after its work a candidate has ended.
fn end_of(process: &Process) -> Duration {
    process.wait_for_line("over", SOON).unwrap();
    let over = Instant::now();
    assert_eq!(exit_code(process), 7);
    over.elapsed()
}

#[test]
fn a_collector_that_never_answers_holds_up_nothing_but_the_end_by_a_moment() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let sandbox = Sandbox::new("silent");
    let work = "echo over; exit 7";
    // The SDK would wait for its exporter, which gives up after five seconds.
    let mut tries = Vec::new();
    let in_time = |tries: &[Duration]| tries.iter().any(|held_up| *held_up <= HELD_UP_MAX);
    while tries.len() < ENDS_MAX && !in_time(&tries) {
        let untold = end_of(&sandbox.run(&[], "job", work));
        let told = end_of(&run(&sandbox, &url, "30s", &[], work));
        tries.push(told.saturating_sub(untold));
    }
    assert!(in_time(&tries), "{tries:?}");
    let (_told, _) = silent.accept().unwrap();
}

#[test]
fn a_collector_that_never_answers_costs_no_term_anything() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let sandbox = Sandbox::new("silent-term");
    let process = run(&sandbox, &url, "10s", &[], "echo working; sleep 300");
    process.wait_for_line("working", SOON).unwrap();
    let (_told, _) = silent.accept().unwrap();
    // Longer than the ttl, and than one telling may take: without renewals the term would be over.
    std::thread::sleep(Duration::from_secs(13));
    let lease = sandbox.lease("job");
    assert_eq!(
        (&lease["state"], &lease["terms"]),
        (&"held".into(), &1.into()),
        "{lease}"
    );
    let lines = process.lines();
    let doubtful = lines.iter().any(|line| line.text.contains("doubtful"));
    assert!(!doubtful, "{lines:?}");
    process.terminate();
    process.wait_for_exit(SOON).unwrap();
}

#[test]
fn an_address_of_no_collector_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new("no-collector");
    for url in ["127.0.0.1:4317", "http://[bad"] {
        let ended = sandbox.tenure(&["run", "--otlp", url, "job", "--", "touch", "ran"]);
        assert_eq!(ended.code, 78, "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains("give http://HOST:4317"), "{ended:?}");
        assert!(!sandbox.dir.join("ran").exists());
    }
}
