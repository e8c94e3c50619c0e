//! A service that takes few requests at once: what is at work there may be of an older term.
use crate::common::{A_WHILE, LONG, Marks, by_path, presented, protection};
use axum::body::{Body, Bytes};
use futures_core::Stream;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tenure_http::FenceLayer;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::limit::ConcurrencyLimit;
use tower::util::BoxCloneService;
use tower::{Layer as _, ServiceExt as _};

/// A client that is frozen before it has sent anything.
struct Frozen;

impl Stream for Frozen {
    type Item = Result<Bytes, Infallible>;
    fn poll_next(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

fn frozen() -> Body {
    Body::from_stream(Frozen)
}

/// A service behind the layer that reads bodies, one request at a time.
struct Site {
    service: BoxCloneService<Request<Body>, Response<Body>, Infallible>,
    calls: Arc<AtomicUsize>,
    called: Arc<Notify>,
}

impl Site {
    fn of_one_at_a_time(layer: &FenceLayer) -> Self {
        let (calls, called) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let told = (calls.clone(), called.clone());
        let reads = tower::service_fn(move |request: Request<_>| {
            told.0.fetch_add(1, Ordering::SeqCst);
            told.1.notify_one();
            let read = Body::new(request.into_body()).collect();
            async move {
                let mut response = Response::new(Body::empty());
                if read.await.is_err() {
                    *response.status_mut() = StatusCode::BAD_REQUEST;
                }
                Ok(response)
            }
        });
        let service = layer.layer(ConcurrencyLimit::new(reads, 1));
        Self {
            service: BoxCloneService::new(service),
            calls,
            called,
        }
    }

    fn put(&self, path: &str, number: u64, body: Body) -> JoinHandle<StatusCode> {
        let request = Request::put(path).header("fencing-token", presented(number));
        let answer = self.service.clone().oneshot(request.body(body).unwrap());
        tokio::spawn(async move { answer.await.unwrap().status() })
    }
}

async fn answered(request: JoinHandle<StatusCode>) -> StatusCode {
    timeout(LONG, request).await.unwrap().unwrap()
}

#[tokio::test]
async fn frozen_client_that_uses_up_a_limit_inside_the_layer_does_not_hold_a_later_term_up() {
    let marks = Marks::new();
    let site = Site::of_one_at_a_time(&FenceLayer::new(marks.gate(), protection()));
    let first = site.put("/", 5, frozen());
    timeout(LONG, site.called.notified()).await.unwrap();
    assert_eq!(
        answered(site.put("/", 4, Body::empty())).await,
        StatusCode::CONFLICT
    );
    assert_eq!(answered(site.put("/", 7, Body::empty())).await, StatusCode::OK);
    assert_eq!(answered(first).await, StatusCode::CONFLICT);
}

#[tokio::test]
async fn request_that_waits_for_the_service_is_refused_once_it_is_superseded() {
    let marks = Marks::new();
    let layer = by_path(&marks);
    let site = Site::of_one_at_a_time(&layer);
    // Nobody succeeds this one.
    let elsewhere = site.put("/a", 5, frozen());
    timeout(LONG, site.called.notified()).await.unwrap();
    let mut first = site.put("/b", 5, Body::empty());
    assert!(
        timeout(A_WHILE, &mut first).await.is_err(),
        "called beside the one that is to be alone"
    );
    let later = site.put("/b", 7, Body::empty());
    assert_eq!(answered(first).await, StatusCode::CONFLICT);
    assert_eq!(site.calls.load(Ordering::SeqCst), 1);
    assert_eq!(layer.tally().stale, 1);
    assert_eq!(answered(site.put("/a", 7, Body::empty())).await, StatusCode::OK);
    assert_eq!(answered(elsewhere).await, StatusCode::CONFLICT);
    assert_eq!(answered(later).await, StatusCode::OK);
}

/// A request that needs no token waits for the service as ever.
#[tokio::test]
async fn request_without_a_token_waits_for_room_inside() {
    let marks = Marks::new();
    let site = Site::of_one_at_a_time(&FenceLayer::new(marks.gate(), protection()));
    let first = site.put("/", 5, frozen());
    timeout(LONG, site.called.notified()).await.unwrap();
    let read = Request::get("/").body(Body::empty()).unwrap();
    let mut read = tokio::spawn(site.service.clone().oneshot(read));
    assert!(timeout(A_WHILE, &mut read).await.is_err());
    assert_eq!(site.calls.load(Ordering::SeqCst), 1);
    assert_eq!(answered(site.put("/", 7, Body::empty())).await, StatusCode::OK);
    let read = timeout(LONG, read).await.unwrap().unwrap().unwrap();
    assert_eq!(read.status(), StatusCode::OK);
    assert_eq!(answered(first).await, StatusCode::CONFLICT);
}
