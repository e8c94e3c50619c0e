//! Where metrics and spans go: to whoever scrapes this process, and to a collector that is told.

#[cfg(feature = "opentelemetry")]
mod collector;
mod refusals;
#[cfg_attr(not(feature = "opentelemetry"), path = "no_spans.rs")]
mod spans;

#[cfg(feature = "opentelemetry")]
pub(crate) use collector::Collector;
pub(crate) use refusals::tell_noted_refusals;
pub(crate) use spans::{Spans, TermSpan};

use crate::exit::{Code, Failure};
use metrics::Recorder;
use metrics_util::layers::FanoutBuilder;
use std::future::Future;
use std::io;
use std::sync::mpsc;
use tenure::metrics::{METRICS, Metric, MetricKind};

/// The histograms.
pub(crate) fn histograms() -> impl Iterator<Item = &'static Metric> {
    METRICS
        .iter()
        .filter(|metric| metric.kind == MetricKind::Histogram)
}

/// What records for somebody who wants to know.
#[derive(Default)]
pub(crate) struct Recorders {
    all: FanoutBuilder,
    any: bool,
}

impl Recorders {
    /// One more.
    pub(crate) fn add(&mut self, recorder: impl Recorder + Send + Sync + 'static) {
        let all = std::mem::take(&mut self.all);
        self.all = all.add_recorder(recorder);
        self.any = true;
    }

    /// From here on metrics are recorded, if anybody wants to know. Once in a process; answers whether
    /// anybody does.
    ///
    /// # Errors
    /// Something else records already.
    pub(crate) fn install(self) -> Result<bool, Failure> {
        if self.any {
            metrics::set_global_recorder(self.all.build()).map_err(|error| {
                Failure::new(Code::Internal, format!("metrics cannot be recorded: {error}"))
            })?;
            tenure::metrics::describe();
        }
        Ok(self.any)
    }
}

/// Does `work` on a thread of its own, which neither the election nor the command waits for, until this
/// process ends.
///
/// # Errors
/// No thread is left, or no runtime was to be had.
pub(crate) fn aside(name: &'static str, work: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::Builder::new().name(format!("tenure {name}"));
    // The runtime is made there, not here and handed over: where no thread is to be had, it would be dropped
    // here, which panics on the command's own.
    thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => {
                let _ = tell.send(Ok(()));
                runtime.block_on(work);
            }
            Err(error) => drop(tell.send(Err(error))),
        }
    })?;
    let gone = |_| io::Error::other("its thread ended before it had a runtime");
    told.recv().map_err(gone)?
}
