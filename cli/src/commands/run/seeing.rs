//! What tells others how it goes: pages, and a collector.

use super::Kind;
use crate::arguments::MetricsArguments;
use crate::endpoint::{Board, Endpoint, Listening, SocketFile};
use crate::exit::{Code, Failure};
use crate::output::Voice;
use crate::place::Place;
#[cfg(feature = "opentelemetry")]
use crate::recording::Collector;
use crate::recording::{Recorders, Spans, aside, tell_noted_refusals};
use std::sync::Arc;
use tenure::{CandidateId, Election};

/// What was asked for, and is to be had.
pub(super) struct Seeing {
    endpoint: Option<Endpoint>,
    /// Served already: the file of the pages' socket, and where they hear of the election.
    pages: Option<(Option<SocketFile>, Listening)>,
    recorders: Recorders,
    #[cfg(feature = "opentelemetry")]
    otlp: Option<String>,
}

/// What is told from here on.
pub(super) struct Told {
    /// Whether anybody wants to know.
    is_recorded: bool,
    pages: Option<Listening>,
    /// The file of the pages' socket: it is removed with this.
    _socket: Option<SocketFile>,
    #[cfg(feature = "opentelemetry")]
    collector: Option<Collector>,
}

impl Seeing {
    /// Takes the address of the pages: before anybody campaigns.
    ///
    /// # Errors
    /// As [`Endpoint::open`].
    pub(super) fn open(arguments: MetricsArguments) -> Result<Self, Failure> {
        let mut recorders = Recorders::default();
        let endpoint = match arguments.metrics.as_deref().map(Endpoint::open).transpose()? {
            Some((endpoint, recorder)) => {
                recorders.add(recorder);
                Some(endpoint)
            }
            None => None,
        };
        Ok(Self {
            endpoint,
            pages: None,
            recorders,
            #[cfg(feature = "opentelemetry")]
            otlp: arguments.otlp,
        })
    }

    /// From here on the pages are served: also a process that waits for its store is seen to live.
    ///
    /// # Errors
    /// No thread is left.
    pub(super) fn serve(mut self, board: &Arc<Board>) -> Result<Self, Failure> {
        let serve = |endpoint: Endpoint| endpoint.serve(Arc::clone(board));
        self.pages = self.endpoint.take().map(serve).transpose()?;
        Ok(self)
    }

    /// From here on metrics are recorded and told: also of a process that waits for its store.
    ///
    /// # Errors
    /// As [`Collector::open`].
    #[cfg_attr(
        not(feature = "opentelemetry"),
        expect(unused_mut, reason = "nobody else records")
    )]
    #[cfg_attr(
        not(feature = "opentelemetry"),
        expect(unused_variables, reason = "nobody is told whose they are")
    )]
    pub(super) fn record(mut self, candidate: &CandidateId) -> Result<Told, Failure> {
        #[cfg(feature = "opentelemetry")]
        let collector = match &self.otlp {
            Some(url) => {
                let (collector, recorder) = Collector::open(url, candidate.as_str())?;
                self.recorders.add(recorder);
                Some(collector)
            }
            None => None,
        };
        let (socket, pages) = self.pages.unzip();
        Ok(Told {
            is_recorded: self.recorders.install()?,
            pages,
            _socket: socket.flatten(),
            #[cfg(feature = "opentelemetry")]
            collector,
        })
    }
}

impl Told {
    /// From here on the pages hear of the election, and refusals are looked for.
    ///
    /// # Errors
    /// No thread is left. Nobody campaigns yet.
    pub(super) fn begin(
        &mut self,
        kind: Kind,
        board: &Arc<Board>,
        election: &Election,
        place: Place,
        voice: Voice,
    ) -> Result<(), Failure> {
        if self.is_recorded && kind == Kind::Election {
            aside("refusals", tell_noted_refusals(place, Arc::clone(board), voice))
                .map_err(|error| Failure::new(Code::Internal, format!("refusals cannot be told: {error}")))?;
        }
        if let Some(listening) = self.pages.take() {
            // Its thread lives as long as this process.
            let _ = listening.send(election.events());
        }
        Ok(())
    }

    /// What makes spans, where somebody is told of them.
    pub(super) fn spans(&self) -> Option<Spans> {
        #[cfg(feature = "opentelemetry")]
        return self.collector.as_ref().map(Collector::spans);
        #[cfg(not(feature = "opentelemetry"))]
        None
    }

    /// Tells the end.
    pub(super) async fn close(self) {
        #[cfg(feature = "opentelemetry")]
        if let Some(collector) = self.collector {
            collector.close().await;
        }
    }
}
