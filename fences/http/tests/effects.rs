//! Check and effect: what an admitted request does, it has done before a later term is let in, however the
//! request ends. Over real sockets.
use crate::common::{A_WHILE, LONG, Marks, SHORT, ledger, presented, protection, term};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::routing::{get, put};
use http::Request;
use http_body_util::BodyExt as _;
use http_body_util::StreamBody;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tenure_http::{Admission, FenceLayer, Gate, Refusal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

/// What took effect, in its order.
type Effects = Arc<Mutex<Vec<u64>>>;

struct Site {
    address: SocketAddr,
    client: Client<HttpConnector, Body>,
    server: JoinHandle<()>,
}

impl Site {
    async fn new(gate: Gate, routes: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = routes.layer(FenceLayer::new(gate, protection()));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            address,
            client: Client::builder(TokioExecutor::new()).build_http(),
            server,
        }
    }

    async fn put(&self, path: &str, number: u64) -> StatusCode {
        let uri = format!("http://{}{path}", self.address);
        let request = Request::put(uri).header("fencing-token", presented(number));
        let request = request.body(Body::from(number.to_string())).unwrap();
        let response = timeout(LONG, self.client.request(request))
            .await
            .unwrap()
            .unwrap();
        response.status()
    }

    /// A connection on which this much of a request of a term was sent.
    async fn half(&self, head: &str, number: u64, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let token = presented(number);
        let token = token.to_str().unwrap();
        let request = format!("{head} HTTP/1.1\r\nhost: a\r\nfencing-token: {token}\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A handler that says when it is inside, and has its effect on leave.
#[derive(Clone, Default)]
struct Slow {
    inside: Arc<Notify>,
    go_on: Arc<Notify>,
    effects: Effects,
}

impl Slow {
    async fn work(self, number: u64) {
        self.inside.notify_one();
        self.go_on.notified().await;
        self.effects.lock().unwrap().push(number);
    }

    fn effects(&self) -> Vec<u64> {
        self.effects.lock().unwrap().clone()
    }

    fn routes(&self) -> Router {
        let (slow, fast) = (self.clone(), self.clone());
        let slow =
            move |Extension(admission): Extension<Admission>| slow.work(admission.term().token.number());
        let fast = move |Extension(admission): Extension<Admission>| async move {
            fast.effects.lock().unwrap().push(admission.term().token.number());
        };
        Router::new().route("/slow", put(slow)).route("/fast", put(fast))
    }

    /// Asserts that a later term is let in only after the effect of the first, which is inside.
    async fn check_order(&self, site: &Site) {
        let mut later = Box::pin(site.put("/fast", 2));
        assert!(
            timeout(A_WHILE, &mut later).await.is_err(),
            "let in beside an older term"
        );
        assert!(self.effects().is_empty());
        self.go_on.notify_one();
        assert_eq!(later.await, StatusCode::OK);
        assert_eq!(self.effects(), [1, 2]);
    }
}

#[tokio::test]
async fn later_term_is_let_in_only_after_the_effect_of_an_older_one() {
    let (marks, slow) = (Marks::new(), Slow::default());
    let site = Site::new(marks.gate(), slow.routes()).await;
    let (first, ()) = tokio::join!(site.put("/slow", 1), async {
        timeout(LONG, slow.inside.notified()).await.unwrap();
        slow.check_order(&site).await;
    });
    assert_eq!(first, StatusCode::OK);
}

#[tokio::test]
async fn work_of_a_broken_connection_has_its_effect_before_a_later_term_is_let_in() {
    let (marks, slow) = (Marks::new(), Slow::default());
    let site = Site::new(marks.gate(), slow.routes()).await;
    let connection = site.half("PUT /slow", 1, "content-length: 0\r\n\r\n").await;
    timeout(LONG, slow.inside.notified()).await.unwrap();
    connection.set_zero_linger().unwrap();
    drop(connection);
    sleep(A_WHILE).await;
    slow.check_order(&site).await;
}

#[tokio::test]
async fn work_that_a_timeout_around_it_gives_up_has_its_effect_before_a_later_term_is_let_in() {
    let (marks, slow) = (Marks::new(), Slow::default());
    let routes = slow.routes().layer(FenceLayer::new(marks.gate(), protection()));
    let send = |path: &str, number| {
        let request = Request::put(path).header("fencing-token", presented(number));
        routes.clone().oneshot(request.body(Body::empty()).unwrap())
    };
    let mut first = Box::pin(send("/slow", 1));
    tokio::select! {
        ended = &mut first => panic!("{:?}", ended.map(|answer| answer.status())),
        inside = timeout(LONG, slow.inside.notified()) => inside.unwrap(),
    }
    assert!(timeout(A_WHILE, first).await.is_err());
    let mut later = Box::pin(send("/fast", 2));
    assert!(
        timeout(A_WHILE, &mut later).await.is_err(),
        "let in beside an older term"
    );
    slow.go_on.notify_one();
    assert_eq!(
        timeout(LONG, later).await.unwrap().unwrap().status(),
        StatusCode::OK
    );
    assert_eq!(slow.effects(), [1, 2]);
}

#[tokio::test]
async fn handler_that_panics_leaves() {
    let marks = Marks::new();
    async fn panics() {
        panic!("on purpose");
    }
    let routes = Router::new()
        .route("/panics", put(panics))
        .route("/fast", put(|| async {}));
    let site = Site::new(marks.gate(), routes).await;
    let mut broken = site.half("PUT /panics", 1, "content-length: 0\r\n\r\n").await;
    let mut answer = Vec::new();
    timeout(LONG, broken.read_to_end(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer, b"");
    assert_eq!(site.put("/fast", 2).await, StatusCode::OK);
}

#[tokio::test]
async fn client_that_is_frozen_while_it_sends_does_not_hold_a_later_term_up() {
    let (marks, effects) = (Marks::new(), Effects::default());
    let inside = Arc::new(Notify::new());
    let routes = {
        let (effects, inside) = (effects.clone(), inside.clone());
        Router::new().route(
            "/",
            put(move |body: Body| async move {
                inside.notify_one();
                match body.collect().await {
                    Ok(whole) => {
                        let number = String::from_utf8_lossy(&whole.to_bytes()).parse().unwrap();
                        effects.lock().unwrap().push(number);
                        (StatusCode::OK, String::new())
                    }
                    Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
                }
            }),
        )
    };
    let site = Site::new(marks.gate(), routes).await;
    let mut frozen = site.half("PUT /", 1, "content-length: 20\r\n\r\n1234").await;
    timeout(LONG, inside.notified()).await.unwrap();
    sleep(A_WHILE).await;
    assert_eq!(site.put("/", 2).await, StatusCode::OK);
    // It thaws, and sends the rest: too late.
    frozen.write_all(b"5678901234567890").await.unwrap_or_default();
    let mut answer = String::new();
    timeout(LONG, frozen.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap_or_default();
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    assert!(
        answer.contains("token-superseded") && answer.contains("token 1 was admitted to"),
        "{answer}"
    );
    assert_eq!(*effects.lock().unwrap(), [2]);
}

#[tokio::test]
async fn what_was_not_read_before_a_later_claim_is_not_read_after_it() {
    let marks = Marks::new();
    let (inside, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let routes = {
        let (inside, go_on) = (inside.clone(), go_on.clone());
        let handler = move |body: Body| async move {
            inside.notify_one();
            go_on.notified().await;
            match body.collect().await {
                Ok(_) => StatusCode::OK,
                Err(_) => StatusCode::BAD_REQUEST,
            }
        };
        Router::new()
            .route("/", put(handler))
            .route("/fast", put(|| async {}))
    };
    let site = Site::new(marks.gate(), routes).await;
    let (first, ()) = tokio::join!(site.put("/", 1), async {
        timeout(LONG, inside.notified()).await.unwrap();
        let mut later = Box::pin(site.put("/fast", 2));
        assert!(
            timeout(A_WHILE, &mut later).await.is_err(),
            "let in beside an older term"
        );
        go_on.notify_one();
        assert_eq!(later.await, StatusCode::OK);
    });
    assert_eq!(first, StatusCode::CONFLICT);
}

/// A response body that never ends, with an admission of its own or without.
fn endless(admission: Option<Admission>) -> Body {
    let frames = futures_like::forever(move || {
        let _kept = &admission;
        Bytes::from_static(&[0; 4096])
    });
    Body::new(StreamBody::new(frames))
}

/// The one stream that is needed, without a crate of streams.
mod futures_like {
    use super::{Bytes, Infallible};
    use futures_core::Stream;
    use http_body::Frame;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    pub struct Forever<F>(F);

    pub fn forever<F: FnMut() -> Bytes + Unpin>(next: F) -> Forever<F> {
        Forever(next)
    }

    impl<F: FnMut() -> Bytes + Unpin> Stream for Forever<F> {
        type Item = Result<Frame<Bytes>, Infallible>;
        fn poll_next(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(Some(Ok(Frame::data((self.0)()))))
        }
    }
}

#[tokio::test]
async fn response_that_streams_holds_a_later_term_up_only_if_it_owns_its_admission() {
    let marks = Marks::new();
    let reads = |_: Extension<Admission>| async { endless(None) };
    let writes = |Extension(admission): Extension<Admission>| async { endless(Some(admission)) };
    let routes = Router::new()
        .route("/reads", get(reads))
        .route("/writes", get(writes))
        .route("/fast", put(|| async {}));
    let site = Site::new(marks.gate().wait_at_most(SHORT), routes).await;
    // Both clients read the head of the response, and then nothing any more.
    let mut reading = site.half("GET /reads", 1, "\r\n").await;
    reading.read_exact(&mut [0; 100]).await.unwrap();
    assert_eq!(site.put("/fast", 2).await, StatusCode::OK);
    let mut writing = site.half("GET /writes", 2, "\r\n").await;
    writing.read_exact(&mut [0; 100]).await.unwrap();
    assert_eq!(site.put("/fast", 3).await, StatusCode::SERVICE_UNAVAILABLE);
    drop(writing);
    let end = tokio::time::Instant::now() + LONG;
    while site.put("/fast", 3).await != StatusCode::OK {
        assert!(
            tokio::time::Instant::now() < end,
            "still inside after its connection is gone"
        );
    }
    drop(reading);
}

#[tokio::test]
async fn work_that_goes_on_after_the_response_holds_a_later_term_up_if_it_owns_its_admission() {
    let (marks, slow) = (Marks::new(), Slow::default());
    let spawns = {
        let slow = slow.clone();
        move |Extension(admission): Extension<Admission>| async move {
            tokio::spawn(async move {
                slow.work(admission.term().token.number()).await;
                drop(admission);
            });
        }
    };
    let routes = slow.routes().route("/spawns", put(spawns));
    let site = Site::new(marks.gate(), routes).await;
    assert_eq!(site.put("/spawns", 1).await, StatusCode::OK);
    timeout(LONG, slow.inside.notified()).await.unwrap();
    slow.check_order(&site).await;
}

/// Each of two layers guards a resource of its own; what goes on after the response owns the inner one's
/// admission.
#[tokio::test]
async fn work_that_goes_on_after_the_response_holds_up_later_terms_of_both_nested_layers() {
    let (outer, inner) = (Marks::new(), Marks::new());
    let (outer, inner) = (Arc::new(outer.gate().wait_at_most(SHORT)), Arc::new(inner.gate()));
    let kept = Arc::new(Mutex::new(None));
    let keeps = {
        let kept = kept.clone();
        move |Extension(admission): Extension<Admission>| async move {
            *kept.lock().unwrap() = Some(admission);
        }
    };
    let routes = Router::new()
        .route("/", put(keeps))
        .layer(FenceLayer::new(inner, protection()))
        .layer(FenceLayer::new(outer.clone(), protection()));
    let request = Request::put("/").header("fencing-token", presented(1));
    let answer = routes.oneshot(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
    let early = outer.admit(&ledger(), &term(2)).await;
    assert!(matches!(early, Err(Refusal::OlderInside { .. })), "{early:?}");
    drop(kept.lock().unwrap().take());
    outer.admit(&ledger(), &term(2)).await.unwrap();
}
