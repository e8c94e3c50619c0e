//! The layer: which request passes, and how each refusal is told.
use crate::common::{A_WHILE, Marks, by_path, ledger, nightly, presented, protection};
use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenure_core::{Fence as _, FencingToken};
use tenure_http::{Admission, FENCING_TOKEN, FenceLayer, Need, Tally};
use tower::ServiceExt as _;

/// As tokens look that follow the clock.
const LATER: u64 = 1_700_001_065_800;

/// A service that counts what reaches it, behind the layer.
struct Site {
    router: Router,
    calls: Arc<AtomicUsize>,
    layer: FenceLayer,
}

impl Site {
    fn new(layer: FenceLayer) -> Self {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let handler = any(move |request: Request<Body>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let admitted = request.extensions().get::<Admission>();
            let told =
                admitted.map(|admission| format!("{} {}", admission.resource(), admission.term().token));
            async move { told.unwrap_or_default() }
        });
        Self {
            router: Router::new().fallback(handler).layer(layer.clone()),
            calls,
            layer,
        }
    }

    async fn send(&self, method: Method, path: &str, tokens: &[&str]) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for token in tokens {
            request = request.header(FENCING_TOKEN, *token);
        }
        let request = request.body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn put(&self, number: u64) -> Response<Body> {
        self.send(Method::PUT, "/", &[presented(number).to_str().unwrap()])
            .await
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn one_ledger(marks: &Marks) -> Site {
    Site::new(FenceLayer::new(marks.gate(), protection()))
}

async fn problem(response: Response<Body>) -> Value {
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let problem: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["status"], status);
    problem
}

#[tokio::test]
async fn admitted_request_reaches_the_service_with_its_admission() {
    let marks = Marks::new();
    let site = one_ledger(&marks);
    let response = site.put(5).await;
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "ledger 5");
    let mark = marks.fence().mark(&ledger()).await.unwrap().unwrap();
    assert_eq!(
        (mark.token, mark.lease),
        (crate::common::token(5), Some(nightly()))
    );
}

#[tokio::test]
async fn stale_token_is_answered_with_409_and_never_reaches_the_service() {
    let marks = Marks::new();
    let site = one_ledger(&marks);
    site.put(LATER).await;
    let refused = site.put(5).await;
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    assert_eq!(refused.headers()["cache-control"], "no-store");
    let expected = json!({
        "type": "urn:tenure:problem:token-stale",
        "title": "The fencing token is stale",
        "status": 409,
        "detail": "refused: token 5 is stale for \"ledger\", which admits none below 1700001065800; stop this work",
        "token": 5,
        "mark": LATER,
        "resource": "ledger",
    });
    assert_eq!(problem(refused).await, expected);
    assert_eq!(site.calls(), 1);
}

#[tokio::test]
async fn every_method_but_the_four_that_only_read_needs_a_token() {
    let marks = Marks::new();
    let site = one_ledger(&marks);
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
        assert_eq!(site.send(method, "/", &[]).await.status(), StatusCode::OK);
    }
    for method in [
        "POST", "PUT", "PATCH", "DELETE", "CONNECT", "QUERY", "MKCOL", "get",
    ] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let refused = site.send(method.clone(), "/", &[]).await;
        assert_eq!(refused.status(), StatusCode::PRECONDITION_REQUIRED, "{method}");
    }
    let problem = problem(site.send(Method::POST, "/", &[]).await).await;
    assert_eq!(problem["type"], "urn:tenure:problem:token-required");
    assert_eq!(problem["resource"], "ledger");
    assert!(
        problem["detail"].as_str().unwrap().contains("\"nightly\""),
        "{problem}"
    );
    assert_eq!(site.calls(), 4);
}

/// A leader claims before it reads: so a read that shows a token is checked, and raises the mark.
#[tokio::test]
async fn read_that_shows_a_token_claims_and_may_be_stale() {
    let marks = Marks::new();
    let site = one_ledger(&marks);
    let get = |number| {
        let value = presented(number);
        let site = &site;
        async move {
            site.send(Method::GET, "/", &[value.to_str().unwrap()])
                .await
                .status()
        }
    };
    assert_eq!(site.put(1).await.status(), StatusCode::OK);
    assert_eq!(get(2).await, StatusCode::OK);
    assert_eq!(site.put(1).await.status(), StatusCode::CONFLICT);
    assert_eq!(get(1).await, StatusCode::CONFLICT);
}

#[tokio::test]
async fn unclear_token_is_answered_with_400_also_where_none_is_needed() {
    let marks = Marks::new();
    let site = one_ledger(&marks);
    for tokens in [
        &["0;lease=\"nightly\""][..],
        &["7"],
        &[""],
        &["7;lease=\"nightly\";lease=\"nightly\""],
        &["7;lease=\"nightly\"", "7;lease=\"nightly\""],
        &["7;lease=\"nightly\", 8;lease=\"nightly\""],
    ] {
        for method in [Method::PUT, Method::GET] {
            let refused = site.send(method, "/", tokens).await;
            assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{tokens:?}");
            assert_eq!(
                problem(refused).await["type"],
                "urn:tenure:problem:token-malformed"
            );
        }
    }
    assert_eq!(site.calls(), 0);
    assert_eq!(marks.fence().mark(&ledger()).await.unwrap(), None);
}

#[tokio::test]
async fn token_of_another_lease_is_answered_with_403_and_raises_no_mark() {
    let marks = Marks::new();
    let site = one_ledger(&marks);
    let refused = site.send(Method::PUT, "/", &["99;lease=\"hourly\""]).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let problem = problem(refused).await;
    assert_eq!(problem["type"], "urn:tenure:problem:token-of-another-lease");
    assert_eq!(problem["token"], 99);
    assert_eq!(site.put(1).await.status(), StatusCode::OK);
    assert_eq!(site.calls(), 1);
}

#[tokio::test]
async fn token_from_the_future_is_answered_with_403_and_closes_nothing() {
    let marks = Marks::new();
    let site = one_ledger(&marks);
    let refused = site.put(FencingToken::MAX.number()).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let problem = problem(refused).await;
    assert_eq!(problem["type"], "urn:tenure:problem:token-from-the-future");
    assert_eq!(problem["token"], FencingToken::MAX.number());
    assert_eq!(site.put(1).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn fence_that_cannot_be_asked_is_answered_with_503_and_its_words_stay_in_the_log() {
    let marks = Marks::new();
    let gate = marks.gate().wait_at_most(A_WHILE);
    let site = Site::new(FenceLayer::new(gate, protection()));
    let blocker = marks.connection();
    blocker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let refused = site.put(1).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "1");
    let problem = problem(refused).await;
    assert_eq!(problem["type"], "urn:tenure:problem:fence-unavailable");
    assert!(!problem.to_string().contains("marks.db"), "{problem}");
    assert_eq!(site.calls(), 0);
}

#[tokio::test]
async fn resource_goes_by_the_request() {
    let marks = Marks::new();
    let layer = by_path(&marks);
    let site = Site::new(layer);
    let put = |path: &'static str, number| {
        let value = presented(number);
        let site = &site;
        async move { site.send(Method::PUT, path, &[value.to_str().unwrap()]).await }
    };
    assert_eq!(put("/a", 2).await.status(), StatusCode::OK);
    assert_eq!(put("/b", 1).await.status(), StatusCode::OK);
    assert_eq!(put("/a", 1).await.status(), StatusCode::CONFLICT);
    let refused = put("/", 2).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert_eq!(problem(refused).await["type"], "urn:tenure:problem:no-resource");
}

#[tokio::test]
async fn which_requests_need_a_token_can_be_chosen() {
    let marks = Marks::new();
    let layer = FenceLayer::new(marks.gate(), protection()).requiring(|parts| match parts.uri.path() {
        "/health" => Need::Optional,
        _ => Need::Required,
    });
    let site = Site::new(layer);
    assert_eq!(
        site.send(Method::POST, "/health", &[]).await.status(),
        StatusCode::OK
    );
    let refused = site.send(Method::GET, "/", &[]).await;
    assert_eq!(refused.status(), StatusCode::PRECONDITION_REQUIRED);
}

#[tokio::test]
async fn every_request_is_counted_once() {
    let marks = Marks::new();
    let site = one_ledger(&marks);
    site.put(2).await;
    site.put(2).await;
    for _ in 0..3 {
        site.put(1).await;
    }
    site.send(Method::GET, "/", &[]).await;
    site.send(Method::PUT, "/", &[]).await;
    site.send(Method::PUT, "/", &["?"]).await;
    site.send(Method::PUT, "/", &["9;lease=\"hourly\""]).await;
    let expected = Tally {
        admitted: 2,
        without_token: 1,
        missing: 1,
        malformed: 1,
        foreign: 1,
        stale: 3,
        ..Tally::default()
    };
    assert_eq!(site.layer.tally(), expected);
}
