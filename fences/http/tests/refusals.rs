//! Refusals that the gate decides by its own memory: they are seen beside the mark, as those of the fence
//! itself.
use crate::common::{Counting, LONG, Marks, ledger, presented, protection, term, token};
use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{Request, StatusCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tenure_core::{Fence, FencingToken, Mark, ResourceName};
use tenure_http::{FenceLayer, Gate, Refusal};
use tenure_testkit::{Warnings, eventually_async};
use tenure_watermark::Watermark;
use tower::ServiceExt as _;

/// Sends stale and foreign tokens past a gate that has to ask `fence` for the first one, and forgets the
/// gate.
async fn refuse_seven(fence: Arc<dyn Fence>) {
    fence.claim(&ledger(), &term(9)).await.unwrap();
    let layer = FenceLayer::new(Gate::new(fence), protection());
    let routes = Router::new().fallback(any(|| async {})).layer(layer.clone());
    let send = |value: http::HeaderValue| {
        let request = Request::put("/").header("fencing-token", value);
        let answer = routes.clone().oneshot(request.body(Body::empty()).unwrap());
        async { answer.await.unwrap().status() }
    };
    // The gate knows of no mark: the fence itself refuses, and counts.
    assert_eq!(send(presented(5)).await, StatusCode::CONFLICT);
    for _ in 0..4 {
        assert_eq!(send(presented(6)).await, StatusCode::CONFLICT);
    }
    for _ in 0..2 {
        let foreign = "7;lease=\"hourly\"".parse().unwrap();
        assert_eq!(send(foreign).await, StatusCode::FORBIDDEN);
    }
    assert_eq!(send(presented(9)).await, StatusCode::OK);
    let tally = layer.tally();
    assert_eq!((tally.stale, tally.foreign, tally.admitted), (5, 2, 1));
}

fn counted(mark: Option<Mark>) -> Option<(u64, Option<FencingToken>)> {
    mark.map(|mark| (mark.refused, mark.last_refused))
}

#[tokio::test]
async fn every_refusal_by_the_gate_is_counted_once_beside_the_mark_in_sqlite() {
    let marks = Marks::new();
    // Dropping the fence notes what it has counted.
    refuse_seven(Arc::new(marks.fence())).await;
    let mark = marks.fence().mark(&ledger()).await.unwrap();
    assert_eq!(counted(mark), Some((7, Some(token(7)))));
}

#[tokio::test]
async fn every_refusal_by_the_gate_is_counted_once_beside_the_mark_of_a_watermark() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marks");
    refuse_seven(Arc::new(Watermark::open(&path).unwrap())).await;
    let seen = Watermark::look(&path).unwrap().unwrap();
    let mark = seen.mark(&ledger()).await.unwrap();
    assert_eq!(counted(mark), Some((7, Some(token(7)))));
}

/// Whether the fence has refused them or the gate before it, and whatever the resources: the lines tell of
/// each once, of the last ones, too, after which nobody is refused any more.
#[tokio::test]
async fn refusals_of_a_burst_are_told_of_once_each_and_in_a_line_a_second() {
    const RESOURCES: u64 = 100;
    const OF_EACH: u64 = 5;
    let warnings = Warnings::listen();
    let marks = Marks::new();
    let fences = [
        ("burst-of-a-file", Arc::new(marks.fence()) as Arc<dyn Fence>),
        ("burst-in-memory", Arc::new(Watermark::new())),
    ];
    for (resources, fence) in fences {
        let gate = Gate::new(fence).wait_at_most(LONG);
        let names = (0..RESOURCES).map(|number| ResourceName::new(format!("{resources}-{number}")).unwrap());
        let names: Vec<ResourceName> = names.collect();
        for name in &names {
            drop(gate.admit(name, &term(9)).await.unwrap());
        }
        let began = Instant::now();
        for _ in 0..OF_EACH {
            for name in &names {
                let refusal = gate.admit(name, &term(5)).await.unwrap_err();
                assert!(matches!(refusal, Refusal::Stale { .. }), "{refusal}");
            }
        }
        let told = || {
            let lines = warnings.about(resources);
            let count = |line: &String| -> u64 {
                let count = line.split("refusals=").nth(1).unwrap().split(' ').next();
                count.unwrap().parse().unwrap()
            };
            let sum: u64 = lines.iter().map(count).sum();
            (sum, lines)
        };
        let all = async || match told() {
            (sum, _) if sum >= RESOURCES * OF_EACH => Ok(()),
            few => Err(format!("{few:#?}")),
        };
        eventually_async(LONG, "all are told of", all).await;
        let (sum, lines) = told();
        let seconds = began.elapsed().as_secs();
        assert_eq!(sum, RESOURCES * OF_EACH, "{lines:#?}");
        assert!(lines.len() as u64 <= seconds + 1, "in {seconds} s: {lines:#?}");
    }
}

/// A stranger may name any resource: what nobody has claimed must leave no trace in the fence's store.
#[tokio::test]
async fn token_of_another_lease_for_what_nobody_has_claimed_is_told_to_no_fence() {
    let marks = Marks::new();
    let fence = Arc::new(Counting::over(marks.fence()));
    let routes = Router::new()
        .fallback(any(|| async {}))
        .layer(FenceLayer::new(Gate::new(fence.clone()), protection()));
    for (value, status, noted) in [
        ("7;lease=\"hourly\"", StatusCode::FORBIDDEN, 0),
        ("7;lease=\"nightly\"", StatusCode::OK, 0),
        ("7;lease=\"hourly\"", StatusCode::FORBIDDEN, 1),
    ] {
        let request = Request::put("/").header("fencing-token", value);
        let answer = routes.clone().oneshot(request.body(Body::empty()).unwrap());
        assert_eq!(answer.await.unwrap().status(), status);
        assert_eq!(fence.noted.load(Ordering::SeqCst), noted);
    }
}
