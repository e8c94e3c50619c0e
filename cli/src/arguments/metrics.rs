//! Who is told how it goes.

/// Where metrics go.
#[derive(clap::Args, Clone, Default, Debug)]
#[command(next_help_heading = "Metrics and health")]
pub(crate) struct MetricsArguments {
    /// Serve metrics and health over HTTP: HOST:PORT, or unix:PATH
    ///
    /// /metrics for Prometheus; /livez, which fails when the command runs although its term is over; /readyz,
    /// which fails while the store does not answer; /leader, who leads now. They are for this machine or a
    /// network that you trust.
    #[arg(long, env = "TENURE_METRICS", hide_env_values = true, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,

    /// Tell metrics and terms to an OpenTelemetry collector, over gRPC: http://HOST:4317
    ///
    /// The same metrics every minute, and at the end; each term as a span when it has ended. The command
    /// finds its context in TRACEPARENT. OTEL_METRIC_EXPORT_INTERVAL (milliseconds),
    /// OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES are heeded. A collector that does not answer
    /// holds nothing up but the end, by a second.
    #[cfg(feature = "opentelemetry")]
    #[arg(long, env = "TENURE_OTLP", hide_env_values = true, value_name = "URL")]
    pub(crate) otlp: Option<String>,
}
