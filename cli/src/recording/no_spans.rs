//! Without OpenTelemetry there are no spans.

use tenure::{Event, FencingToken, LeaseName};

/// There is none.
pub(crate) enum Spans {}

impl Spans {
    pub(crate) fn begin(&self, _lease: &LeaseName, _candidate: &str, _token: FencingToken) -> TermSpan {
        match *self {}
    }
}

/// There is none.
pub(crate) enum TermSpan {}

impl TermSpan {
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        match *self {}
    }

    pub(crate) fn note(&self, _event: &Event) {
        match *self {}
    }

    pub(crate) fn end(self, _how: &str, _lost: bool) {
        match self {}
    }
}
