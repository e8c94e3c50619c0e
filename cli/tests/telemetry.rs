//! What a collector is told over OTLP.
//!
//! The collector is the tests' own, made of the protocol's published definitions: a real one is not to be had from
//! the registries that the tests use.

#![allow(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, its functions too"
)]

mod common;

use common::{SOON, Sandbox, exit_code};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_testkit::{Process, eventually, free_port};
use tonic::{Request, Response, Status, async_trait};

/// Everything that was told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<ExportMetricsServiceRequest>>>);

#[async_trait]
impl MetricsService for Told {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
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
        let address: SocketAddr = format!("127.0.0.1:{}", free_port()).parse().unwrap();
        let told = Told::default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let service = MetricsServiceServer::new(told.clone());
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve(address),
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

    fn is_of(&self, instance: &str) -> bool {
        let told = self.told.0.lock().unwrap();
        let mut resources = told
            .iter()
            .flat_map(|request| &request.resource_metrics)
            .filter_map(|metrics| metrics.resource.as_ref());
        resources.all(|resource| {
            has(&resource.attributes, ("service.name", "tenure"))
                && has(&resource.attributes, ("service.instance.id", instance))
        })
    }
}

fn has(attributes: &[KeyValue], (key, text): (&str, &str)) -> bool {
    attributes.iter().any(|attribute| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        attribute.key == key && matches!(value, Some(any_value::Value::StringValue(value)) if value == text)
    })
}

/// Starts a candidate that tells the collector often.
fn run(sandbox: &Sandbox, url: &str, options: &[&str], script: &str) -> Process {
    let told = ["run", "--otlp", url, "--candidate", "one", "--ttl", "2s"];
    let work = ["job", "--", "sh", "-c", script];
    let mut command = sandbox.command(&[&told[..], options, &work].concat());
    command.env("OTEL_METRIC_EXPORT_INTERVAL", "200");
    Process::spawn(command).unwrap()
}

#[test]
fn a_collector_is_told_what_the_pages_show_and_how_it_ended() {
    let collector = Collector::start();
    let sandbox = Sandbox::new("collector");
    let pages = format!("127.0.0.1:{}", free_port());
    let process = run(&sandbox, &collector.url, &["--metrics", &pages], "sleep 300");
    let job = ("lease", "job");
    eventually(SOON, "the leader is told of", || {
        collector.number("leader_status", job) == Some(1.0)
    });
    eventually(SOON, "a renewal is told of", || {
        collector
            .number("lease_renewals", job)
            .is_some_and(|renewals| renewals >= 1.0)
    });
    assert_eq!(collector.number("lease_acquisition_attempts", job), Some(1.0));
    let bounds = collector.bounds("lease_renewal_seconds").unwrap();
    assert!(
        bounds.first() == Some(&0.001) && bounds.last() == Some(&60.0),
        "{bounds:?}"
    );
    assert!(collector.is_of("one"));
    process.terminate();
    process.wait_for_exit(SOON).unwrap();
    // The very last is told, whatever the interval.
    assert_eq!(collector.number("leader_status", job), Some(0.0));
    assert_eq!(
        collector.number("lease_terms_ended", ("cause", "given_back")),
        Some(1.0)
    );
}

#[test]
fn a_collector_that_never_answers_holds_up_nothing_but_the_end_by_a_moment() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let sandbox = Sandbox::new("silent");
    let began = Instant::now();
    assert_eq!(
        sandbox.tenure(&["run", "job", "--", "sh", "-c", "exit 7"]).code,
        7
    );
    let untold = began.elapsed();
    let began = Instant::now();
    assert_eq!(exit_code(&run(&sandbox, &url, &[], "exit 7")), 7);
    // The SDK would wait for its exporter, which gives up after five seconds.
    let held_up = began.elapsed().saturating_sub(untold);
    assert!(held_up < Duration::from_secs(4), "{held_up:?}");
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
