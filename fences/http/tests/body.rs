//! The body of a request that is superseded: it fails once, and then it has ended.
use crate::common::{LONG, Marks, ledger, presented, protection};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::put;
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tenure_core::Fence as _;
use tenure_http::FenceLayer;
use tokio::sync::Notify;
use tokio::time::timeout;
use tower::ServiceExt as _;

/// More reads than any handler needs that comes to an end.
const READS_MAX: usize = 1_000;

/// What a client sends that falls silent after the first bytes.
#[derive(Default)]
struct Silent {
    has_begun: bool,
}

impl http_body::Body for Silent {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"1234")))))
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(if self.has_begun { 16 } else { 20 })
    }
}

async fn send(routes: &Router, path: &str, number: u64, body: Body) -> Response<Body> {
    let request = Request::put(path).header("fencing-token", presented(number));
    let answer = routes.clone().oneshot(request.body(body).unwrap());
    timeout(LONG, answer).await.unwrap().unwrap()
}

/// What a handler has met that reads on after errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Met {
    errors: usize,
    reads: usize,
    is_at_its_end: bool,
    left: Option<u64>,
}

#[tokio::test]
async fn handler_that_skips_errors_comes_to_an_end_and_a_later_term_gets_in() {
    let (marks, inside, told) = (Marks::new(), Arc::new(Notify::new()), Arc::new(Mutex::new(None)));
    let skips = {
        let (inside, told) = (inside.clone(), told.clone());
        move |mut body: Body| async move {
            let (mut errors, mut reads) = (0, 0);
            while let Some(frame) = body.frame().await {
                inside.notify_one();
                errors += usize::from(frame.is_err());
                reads += 1;
                if reads == READS_MAX {
                    break;
                }
            }
            *told.lock().unwrap() = Some(Met {
                errors,
                reads,
                is_at_its_end: body.is_end_stream(),
                left: body.size_hint().exact(),
            });
        }
    };
    let routes = Router::new()
        .route("/", put(skips))
        .route("/fast", put(|| async {}))
        .layer(FenceLayer::new(marks.gate(), protection()));
    let (first, later) = tokio::join!(send(&routes, "/", 5, Body::new(Silent::default())), async {
        timeout(LONG, inside.notified()).await.unwrap();
        send(&routes, "/fast", 9, Body::empty()).await
    });
    let met = Met {
        errors: 1,
        reads: 2,
        is_at_its_end: true,
        left: Some(0),
    };
    assert_eq!(*told.lock().unwrap(), Some(met));
    assert_eq!((first.status(), later.status()), (StatusCode::OK, StatusCode::OK));
}

#[tokio::test]
async fn body_that_has_come_as_a_whole_is_left_whole() {
    let (marks, inside, go_on) = (Marks::new(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let reads = {
        let (inside, go_on) = (inside.clone(), go_on.clone());
        move |mut body: Body| async move {
            let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
            inside.notify_one();
            go_on.notified().await;
            let end = body.frame().await;
            assert!(end.is_none(), "{end:?} after all that was sent");
            data
        }
    };
    let gate = Arc::new(marks.gate());
    let routes = Router::new()
        .route("/", put(reads))
        .route("/fast", put(|| async {}))
        .layer(FenceLayer::new(gate.clone(), protection()));
    let watcher = gate.admit(&ledger(), &crate::common::term(1)).await.unwrap();
    let (first, later, ()) = tokio::join!(
        send(&routes, "/", 1, Body::from("whole")),
        async {
            timeout(LONG, inside.notified()).await.unwrap();
            send(&routes, "/fast", 2, Body::empty()).await
        },
        async {
            timeout(LONG, watcher.superseded()).await.unwrap();
            drop(watcher);
            go_on.notify_one();
        }
    );
    assert_eq!((first.status(), later.status()), (StatusCode::OK, StatusCode::OK));
}

#[tokio::test]
async fn request_that_was_cut_short_is_counted_beside_the_mark() {
    let (marks, inside) = (Marks::new(), Arc::new(Notify::new()));
    let collects = {
        let inside = inside.clone();
        move |body: Body| async move {
            inside.notify_one();
            match body.collect().await {
                Ok(_) => StatusCode::OK,
                Err(_) => StatusCode::BAD_REQUEST,
            }
        }
    };
    let layer = FenceLayer::new(marks.gate(), protection());
    let routes = Router::new()
        .route("/", put(collects))
        .route("/fast", put(|| async {}))
        .layer(layer.clone());
    let (first, later) = tokio::join!(send(&routes, "/", 5, Body::new(Silent::default())), async {
        timeout(LONG, inside.notified()).await.unwrap();
        send(&routes, "/fast", 9, Body::empty()).await
    });
    assert_eq!(
        (first.status(), later.status()),
        (StatusCode::CONFLICT, StatusCode::OK)
    );
    assert_eq!(layer.tally().stale, 1);
    // Dropping the gate's fence notes what it has counted.
    drop((routes, layer));
    let mark = marks.fence().mark(&ledger()).await.unwrap().unwrap();
    assert_eq!(
        (mark.refused, mark.last_refused),
        (1, Some(crate::common::token(5)))
    );
}
