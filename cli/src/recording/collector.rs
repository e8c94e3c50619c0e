//! A collector that is told over OTLP.

use super::{Spans, aside, histograms};
use crate::exit::{Code, Failure};
use crate::output::clean;
use metrics_opentelemetry::{OpenTelemetryMetrics, OpenTelemetryRecorder};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::time::Duration;

/// How long one telling may take.
const TELL_TIME_MAX: Duration = Duration::from_secs(5);

/// How long the last telling may hold up the end of this process.
const LAST_TELL_TIME_MAX: Duration = Duration::from_secs(1);

/// A collector that is told of the metrics every minute, or as often as `OTEL_METRIC_EXPORT_INTERVAL` says,
/// and of each term some seconds after its end.
pub(crate) struct Collector {
    metrics: SdkMeterProvider,
    spans: SdkTracerProvider,
}

impl Collector {
    /// Tells the collector at `url` from now on what the recorder takes in. It need not answer yet.
    ///
    /// # Errors
    /// [`Code::Configuration`]: it is no URL of a collector, or has a password. Nothing was started.
    pub(crate) fn open(url: &str, candidate: &str) -> Result<(Self, OpenTelemetryRecorder), Failure> {
        // Not quoted, and looked for everywhere: a password may have any sign in it.
        if url.contains('@') {
            return Err(Failure::new(
                Code::Configuration,
                "--otlp: a URL with a user or a password is refused, as it would be logged; give http://HOST:4317, and the \
                 password in OTEL_EXPORTER_OTLP_HEADERS",
            ));
        }
        let refused = |why: String| {
            Failure::new(
                Code::Configuration,
                format!(
                    "--otlp \"{}\": {why}; give http://HOST:4317, or https://",
                    clean(url)
                ),
            )
        };
        if !["http://", "https://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            return Err(refused("it is no URL with http or https".to_owned()));
        }
        let (told, exporters) = std::sync::mpsc::channel();
        let metrics = to(url, MetricExporter::builder().with_tonic());
        let spans = to(url, SpanExporter::builder().with_tonic());
        // Built where they will live: a connection is driven by the runtime that it was made in.
        aside("telemetry", async move {
            let _ = told.send(metrics.build().and_then(|metrics| Ok((metrics, spans.build()?))));
            std::future::pending::<()>().await;
        })
        .map_err(|error| Failure::new(Code::Internal, format!("the collector cannot be told: {error}")))?;
        let (metrics, spans) = exporters
            .recv()
            .map_err(|gone| refused(gone.to_string()))?
            .map_err(|error| refused(error.to_string()))?;
        let resource = resource(candidate);
        let metrics = SdkMeterProvider::builder()
            .with_resource(resource.clone())
            .with_periodic_exporter(metrics)
            .build();
        let spans = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_batch_exporter(spans)
            .build();
        let mut recorder = OpenTelemetryRecorder::new(OpenTelemetryMetrics::new(metrics.meter("tenure")));
        for metric in histograms() {
            recorder.set_histogram_bounds_mut([metric.name].into_iter(), metric.buckets());
        }
        Ok((Self { metrics, spans }, recorder))
    }

    /// What makes the spans that it is told of.
    pub(crate) fn spans(&self) -> Spans {
        Spans::new(self.spans.tracer("tenure"))
    }

    /// Tells the last, unless the collector does not take it in time.
    pub(crate) async fn close(self) {
        let (told, ended) = tokio::sync::oneshot::channel();
        // It waits for the collector, on no runtime's thread.
        let ending = std::thread::Builder::new().spawn(move || {
            // The end of the last term first: it is told of nowhere else.
            let _ = self.spans.shutdown();
            let _ = self.metrics.shutdown();
            let _ = told.send(());
        });
        if ending.is_ok() {
            let _ = tokio::time::timeout(LAST_TELL_TIME_MAX, ended).await;
        }
    }
}

/// Of whom all is told: what the variables say, and else this.
fn resource(candidate: &str) -> Resource {
    let ours = [
        ("service.name", "tenure".to_owned()),
        ("service.instance.id", candidate.to_owned()),
    ];
    let ours = ours.map(|(key, value)| KeyValue::new(key, value));
    let named = std::env::var("OTEL_SERVICE_NAME")
        .ok()
        .filter(|name| !name.is_empty());
    Resource::builder()
        .with_attributes(ours)
        .with_detector(Box::new(EnvResourceDetector::new()))
        .with_attributes(named.map(|name| KeyValue::new("service.name", name)))
        .build()
}

/// An exporter to this place.
fn to<B: WithExportConfig + WithTonicConfig>(url: &str, builder: B) -> B {
    let builder = builder.with_endpoint(url).with_timeout(TELL_TIME_MAX);
    match url.starts_with("https://") {
        true => builder.with_tls_config(ClientTlsConfig::new().with_enabled_roots()),
        false => builder,
    }
}

#[cfg(test)]
mod tests {
    use super::Collector;
    use std::net::TcpListener;
    use std::time::Duration;
    use tenure::{FencingToken, LeaseName};
    use tokio::time::Instant;

    /// The runtime's clock goes on by what is waited for alone; the collector does not answer by any clock.
    #[tokio::test(start_paused = true)]
    async fn a_collector_that_never_answers_is_waited_for_one_second_at_the_end() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let (collector, _recorder) = Collector::open(&url, "a").unwrap();
        let token = FencingToken::new(1).unwrap();
        let lease = LeaseName::new("job").unwrap();
        collector.spans().begin(&lease, "a", token).end("released", false);
        let began = Instant::now();
        collector.close().await;
        assert_eq!(began.elapsed(), Duration::from_secs(1));
    }
}
