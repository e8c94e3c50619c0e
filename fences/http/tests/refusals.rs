//! Refusals that the gate decides by its own memory: they are seen beside the mark, as those of the fence itself.
use crate::common::{Counting, Marks, ledger, presented, protection, term, token};
use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{Request, StatusCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenure_core::{Fence, FencingToken, Mark};
use tenure_http::{FenceLayer, Gate};
use tenure_testkit::Warnings;
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

/// Each with how many since its last line.
#[tokio::test]
async fn refusals_are_logged_by_the_fence_and_by_the_gate_before_it() {
    let marks = Marks::new();
    for fence in [
        Arc::new(marks.fence()) as Arc<dyn Fence>,
        Arc::new(Watermark::new()),
    ] {
        let lines = Warnings::listen().of(refuse_seven(fence)).await;
        // On a loaded machine the next second may have come, and then another line.
        let first = |line: &&String| {
            line.contains("token 5 is stale for \"ledger\", which term 9 has claimed")
                && line.contains("refusals=1 ")
        };
        let firsts: Vec<_> = lines.iter().filter(first).collect();
        let of_gate = firsts.iter().filter(|line| line.starts_with("tenure_http"));
        assert_eq!((firsts.len(), of_gate.count()), (2, 1), "{lines:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_of_stale_terms_that_take_turns_are_a_line_a_second() {
    let fence = Arc::new(Watermark::new());
    fence.claim(&ledger(), &term(9)).await.unwrap();
    let layer = FenceLayer::new(Gate::new(fence), protection());
    let routes = Router::new().fallback(any(|| async {})).layer(layer);
    let refuse = async |number| {
        let request = Request::put("/").header("fencing-token", presented(number));
        let answer = routes.clone().oneshot(request.body(Body::empty()).unwrap());
        assert_eq!(answer.await.unwrap().status(), StatusCode::CONFLICT);
    };
    let warnings = Warnings::listen();
    let lines = warnings.of(async {
        for _ in 0..500 {
            refuse(5).await;
            refuse(6).await;
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        refuse(5).await;
    });
    let lines = lines.await;
    let of_gate = lines.iter().filter(|line| line.starts_with("tenure_http"));
    let counts: Vec<_> = of_gate
        .filter_map(|line| line.split("refusals=").nth(1)?.split(' ').next())
        .collect();
    assert_eq!(counts, ["1", "1000"], "{lines:#?}");
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
