//! What this process tells over HTTP: metrics, and whether it is well. On a thread of its own, which neither
//! the election nor the command waits for.

mod board;
mod pages;
mod places;
mod socket;

pub(crate) use socket::SocketFile;

pub(crate) use board::{Board, Left};

use crate::exit::{Code, Failure};
use crate::output::unless_url;
use crate::recording::{aside, histograms};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use places::{Idleness, Places};
use std::convert::Infallible;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tenure::Event;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot};

/// Connections at a time; the next one takes the place of the one that has been idle for longest.
const CONNECTIONS_MAX: usize = 32;

/// How long one connection may last, for its one question and the answer.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);

/// How long one may take to ask: a place is for who wants something.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// How long to wait when a connection could not be taken.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How often what was recorded is put together, so that nothing grows while nobody scrapes.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// What a path of a socket begins with.
const UNIX: &str = "unix:";

/// Where to say what tells of the election.
pub(crate) type Listening = oneshot::Sender<broadcast::Receiver<Event>>;

/// An address to listen on, taken before anybody campaigns.
pub(crate) struct Endpoint {
    listener: Listener,
    file: Option<SocketFile>,
    metrics: PrometheusHandle,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Endpoint {
    /// Takes `address`: `HOST:PORT`, or `unix:PATH`. Its pages show the metrics that the recorder takes in.
    ///
    /// # Errors
    /// [`Code::Configuration`]: it is no address, or not to be had. Nothing was started.
    pub(crate) fn open(address: &str) -> Result<(Self, PrometheusRecorder), Failure> {
        let failed = |error: std::io::Error| {
            let way_out = match error.kind() {
                std::io::ErrorKind::AddrInUse => "another process uses it; name another port or path",
                std::io::ErrorKind::PermissionDenied => {
                    "this user may not; name a port above 1023, or another path"
                }
                std::io::ErrorKind::AlreadyExists => "name another path, or remove it",
                _ => "give HOST:PORT, such as 127.0.0.1:9150, or unix:/run/NAME.sock",
            };
            // No address has that sign, and a URL without its scheme has it after the password; a path may
            // have any.
            let shown = match address.contains('@') && !address.starts_with(UNIX) {
                true => "(not shown: this looks like a URL)".to_owned(),
                false => unless_url(address),
            };
            Failure::new(
                Code::Configuration,
                format!("--metrics \"{shown}\": {error}; {way_out}"),
            )
        };
        let (listener, file) = match address.strip_prefix(UNIX) {
            Some(path) => {
                let (listener, file) = socket::listen(Path::new(path)).map_err(failed)?;
                (Listener::Unix(listener), Some(file))
            }
            None => (Listener::Tcp(TcpListener::bind(address).map_err(failed)?), None),
        };
        let recorder = histograms()
            .try_fold(PrometheusBuilder::new(), |builder, metric| {
                let this = Matcher::Full(metric.name.to_owned());
                builder.set_buckets_for_metric(this, metric.buckets())
            })
            .map(PrometheusBuilder::build_recorder)
            .map_err(|error| Failure::new(Code::Internal, format!("metrics cannot be recorded: {error}")))?;
        let metrics = recorder.handle();
        let endpoint = Self {
            listener,
            file,
            metrics,
        };
        Ok((endpoint, recorder))
    }

    /// Serves the pages until this process ends, and takes in what happens from when it is told where to hear
    /// of it. Its thread is not waited for at the end: the socket's file, where there is one, is the caller's
    /// to keep until then.
    ///
    /// # Errors
    /// No thread is left.
    pub(crate) fn serve(mut self, board: Arc<Board>) -> Result<(Option<SocketFile>, Listening), Failure> {
        let file = self.file.take();
        let (listening, events) = oneshot::channel();
        aside("endpoint", self.run(board, events))
            .map_err(|error| Failure::new(Code::Internal, format!("the pages cannot be served: {error}")))?;
        Ok((file, listening))
    }

    async fn run(self, board: Arc<Board>, events: oneshot::Receiver<broadcast::Receiver<Event>>) {
        let metrics = self.metrics.clone();
        let upkeep = async move {
            loop {
                tokio::time::sleep(UPKEEP_EVERY).await;
                metrics.run_upkeep();
            }
        };
        let listening = listen(self.listener, Arc::clone(&board), self.metrics);
        tokio::join!(upkeep, follow(board, events), listening);
    }
}

async fn follow(board: Arc<Board>, events: oneshot::Receiver<broadcast::Receiver<Event>>) {
    let Ok(mut events) = events.await else { return };
    loop {
        match events.recv().await {
            Ok(event) => board.take_in(&event),
            // The next renewal tells again.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

async fn listen(listener: Listener, board: Arc<Board>, metrics: PrometheusHandle) {
    let mut places = Places::new(CONNECTIONS_MAX);
    let Ok(listener) = listener.nonblocking() else {
        return;
    };
    loop {
        let Ok(stream) = listener.accept().await else {
            // No descriptor is left, for one: some will be.
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let (board, metrics) = (Arc::clone(&board), metrics.clone());
        let serve = |idleness| converse(stream, idleness, board, metrics);
        places.serve(serve).await;
    }
}

/// A listener that waits for nobody else.
enum Accepting {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl Listener {
    fn nonblocking(self) -> std::io::Result<Accepting> {
        match self {
            Self::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(listener).map(Accepting::Tcp)
            }
            Self::Unix(listener) => {
                listener.set_nonblocking(true)?;
                tokio::net::UnixListener::from_std(listener).map(Accepting::Unix)
            }
        }
    }
}

impl Accepting {
    async fn accept(&self) -> std::io::Result<Stream> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}
type Stream = Box<dyn Connection>;

/// Answers one question: whoever has another one connects again, behind those that wait.
async fn converse(stream: Stream, idleness: Arc<Idleness>, board: Arc<Board>, metrics: PrometheusHandle) {
    let service = service_fn(|request: Request<Incoming>| {
        let (idleness, board, metrics) = (Arc::clone(&idleness), Arc::clone(&board), metrics.clone());
        async move {
            let page = pages::answer(request.method(), request.uri().path(), &board, &metrics);
            Ok::<Response<Full<Bytes>>, Infallible>(idleness.interrupted_by(page).await)
        }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME_MAX)
        .keep_alive(false)
        // Who has sent all of a request may say so: the answer is still wanted.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    // Whoever breaks off has not wanted the rest.
    let _ended = tokio::time::timeout(CONNECTION_TIME_MAX, serving).await;
}
