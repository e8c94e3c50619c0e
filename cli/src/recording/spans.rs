//! Terms as spans: one for each, which the work's own spans may stand below.

use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanBuilder, Status, TraceContextExt as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use std::collections::HashMap;
use std::time::Duration;
use tenure::{Event, FencingToken, LeaseName, StoreError};

/// What a term's span is called.
const TERM: &str = "lease.term";

/// What the context of a trace is called in the environment, as OpenTelemetry has it; the propagator's own
/// names are in lower case.
const VARIABLES: [(&str, &str); 2] = [("TRACEPARENT", "traceparent"), ("TRACESTATE", "tracestate")];

/// Makes spans.
pub(crate) struct Spans {
    tracer: SdkTracer,
    /// What this process was started in.
    parent: Context,
}

impl Spans {
    /// Spans that stand below the one that the environment names, if it does.
    pub(super) fn new(tracer: SdkTracer) -> Self {
        let given = VARIABLES.into_iter().filter_map(|(variable, name)| {
            let value = std::env::var(variable).ok()?;
            Some((name.to_owned(), value))
        });
        let given: HashMap<String, String> = given.collect();
        Self {
            parent: TraceContextPropagator::new().extract_with_context(&Context::new(), &given),
            tracer,
        }
    }

    /// A term began.
    pub(crate) fn begin(&self, lease: &LeaseName, candidate: &str, token: FencingToken) -> TermSpan {
        let builder = SpanBuilder::from_name(TERM).with_attributes([
            KeyValue::new("lease", lease.to_string()),
            KeyValue::new("candidate", candidate.to_owned()),
            KeyValue::new("token", token.signed()),
        ]);
        let span = builder.start_with_context(&self.tracer, &self.parent);
        TermSpan {
            token,
            context: self.parent.with_span(span),
        }
    }
}

/// The span of a term that has not ended.
pub(crate) struct TermSpan {
    token: FencingToken,
    context: Context,
}

impl TermSpan {
    /// What the work finds in its environment, for its own spans to stand below this one.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut told = HashMap::new();
        TraceContextPropagator::new().inject_context(&self.context, &mut told);
        let told = VARIABLES.into_iter().map(|(variable, name)| {
            // One that is not told is emptied: it would be of another span.
            (variable, told.remove(name).unwrap_or_default())
        });
        told.collect()
    }

    /// Takes in what happened in the term.
    pub(crate) fn note(&self, event: &Event) {
        let failed = |error: &StoreError, remaining: &Duration| {
            let why = KeyValue::new("error", error.to_string());
            let left = KeyValue::new("remaining_s", remaining.as_secs_f64());
            vec![why, left]
        };
        let (token, what, attributes) = match event {
            Event::RenewalFailed {
                token,
                error,
                remaining,
                ..
            } => (token, "renewal failed", failed(error, remaining)),
            Event::Doubted { token, remaining, .. } => {
                let left = KeyValue::new("remaining_s", remaining.as_secs_f64());
                (token, "doubted", vec![left])
            }
            Event::Reassured { token, .. } => (token, "reassured", Vec::new()),
            Event::Stuck { token, idle_for, .. } => {
                let idle = KeyValue::new("idle_s", idle_for.as_secs_f64());
                (token, "stuck", vec![idle])
            }
            Event::AskedToStepDown { token, .. } => (token, "asked to step down", Vec::new()),
            Event::ReleaseFailed {
                token,
                error,
                remaining,
                ..
            } => (token, "release failed", failed(error, remaining)),
            Event::Renewed { .. }
            | Event::Standby { .. }
            | Event::AttemptFailed { .. }
            | Event::CampaignEnded { .. }
            | Event::Withdrawn { .. }
            | Event::Acquired { .. }
            | Event::Ended { .. }
            | Event::Departed { .. } => return,
        };
        if *token == self.token {
            self.context.span().add_event(what, attributes);
        }
    }

    /// The term has ended, in words; was it a loss?
    pub(crate) fn end(self, how: &str, lost: bool) {
        let span = self.context.span();
        span.set_attribute(KeyValue::new("end", how.to_owned()));
        span.set_status(match lost {
            true => Status::error(how.to_owned()),
            false => Status::Ok,
        });
        span.end();
    }
}
