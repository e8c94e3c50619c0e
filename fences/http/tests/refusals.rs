//! Refusals that the gate decides by its own memory: they are seen beside the mark, as those of the fence itself.
use crate::common::log::warnings;
use crate::common::{Counting, Marks, ledger, presented, protection, term, token};
use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{Request, StatusCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenure_core::{Fence, FencingToken, Mark};
use tenure_http::{FenceLayer, Gate};
use tenure_watermark::Watermark;
use tower::ServiceExt as _;

/// Sends stale and foreign tokens past a gate that has to ask `fence` for the first one, and forgets the gate.
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

/// The fence logs what it refuses itself, with how many since its last line, and the gate each zombie once that it refuses by
/// its memory.
#[tokio::test]
async fn refusals_are_logged_by_the_fence_and_by_the_gate_before_it() {
    let marks = Marks::new();
    for fence in [
        Arc::new(marks.fence()) as Arc<dyn Fence>,
        Arc::new(Watermark::new()),
    ] {
        let lines = warnings(refuse_seven(fence)).await;
        // The fence says how many; on a loaded machine its next second may have come, and then another line.
        let (of_fence, of_gate): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line.contains("refusals="));
        for (lines, said) in [
            (
                of_fence,
                [
                    "token 5 is stale for \"ledger\", which term 9 has claimed",
                    "refusals=1 ",
                ],
            ),
            (
                of_gate,
                ["token 6 is stale for \"ledger\", which term 9 has claimed", ""],
            ),
        ] {
            let is_it = |line: &&String| said.iter().all(|words| line.contains(words));
            assert_eq!(lines.iter().filter(is_it).count(), 1, "{said:?}: {lines:#?}");
        }
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
