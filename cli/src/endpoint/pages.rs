//! The pages: `/metrics`, `/livez`, `/readyz`, `/leader`.

use super::board::{Board, FRESH, Health, Look};
use crate::output::in_json;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use hyper::{Method, Response, StatusCode};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use std::time::Duration;
use tenure::contract::Occupancy;
use tenure::{FencingToken, clock_now};

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const JSON: &str = "application/json";

type Page = (StatusCode, &'static str, String);

/// Answers a request for `path`.
pub(super) async fn answer(
    method: &Method,
    path: &str,
    board: &Board,
    metrics: &PrometheusHandle,
) -> Response<Full<Bytes>> {
    let (status, kind, body) = match (method, path) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, PROMETHEUS, metrics.render()),
        (&Method::GET | &Method::HEAD, "/livez") => live(board),
        (&Method::GET | &Method::HEAD, "/readyz") => ready(board).await,
        (&Method::GET | &Method::HEAD, "/leader") => leader(board).await,
        (&Method::GET | &Method::HEAD, _) => {
            let pages = "there are /metrics, /livez, /readyz and /leader\n";
            (StatusCode::NOT_FOUND, TEXT, pages.to_owned())
        }
        _ => (
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            "only GET and HEAD\n".to_owned(),
        ),
    };
    let response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .header(CACHE_CONTROL, "no-store");
    response
        .body(Full::new(Bytes::from(body)))
        .expect("status and headers are constants")
}

/// Fails when the command runs although its term is over: then this process cannot end it, and is better
/// ended.
fn live(board: &Board) -> Page {
    match board.health() {
        Health::Leads(..) | Health::Idle => (StatusCode::OK, TEXT, "ok\n".to_owned()),
        Health::WorksWithoutTerm => (
            StatusCode::SERVICE_UNAVAILABLE,
            TEXT,
            format!(
                "lease \"{}\": the term is over, and its command still runs\n",
                board.name
            ),
        ),
    }
}

/// Fails while the store does not answer: then this process can neither take over nor lead on.
async fn ready(board: &Board) -> Page {
    match board.look().await.found {
        Ok(_) => (StatusCode::OK, TEXT, "ok\n".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{error}\n")),
    }
}

/// Who leads, as the store says now.
async fn leader(board: &Board) -> Page {
    let look = board.look().await;
    let age = clock_now().since(look.asked_at);
    leader_of(board, look, age)
}

/// Who leads, as the store has said to whoever asked so long ago: never somebody whose lease has ended
/// meanwhile, and nobody after an answer that came too late.
fn leader_of(board: &Board, look: Look, age: Duration) -> Page {
    let mut page = json!({
        "lease": board.name.as_str(),
        "candidate": board.candidate().map(|own| own.id.as_str()),
        // Not known, until the store has said it.
        "leads": null,
        "own_token": null,
        "asked_ago_ms": in_json(age),
    });
    let fresh = match look.found {
        Ok(_) if age > FRESH => Err(format!(
            "lease \"{}\": the store answered late: what it said is older than {FRESH:?}",
            board.name
        )),
        found => found.map_err(|error| error.to_string()),
    };
    let lease = match fresh {
        Ok(lease) => lease,
        Err(error) => {
            page["error"] = json!(error);
            return (StatusCode::SERVICE_UNAVAILABLE, JSON, format!("{page}\n"));
        }
    };
    let lease = lease.filter(|lease| lease.occupancy() == Occupancy::Held && lease.remaining > age);
    // What this process believes is older than what the store says: its term may have been taken from it.
    let own = match board.health() {
        Health::Leads(token, _) => Some(token),
        Health::Idle | Health::WorksWithoutTerm => None,
    };
    let own = own.filter(|own| lease.as_ref().is_some_and(|lease| board.is_own(lease, *own)));
    page["leads"] = json!(own.is_some());
    page["own_token"] = json!(own.map(FencingToken::number));
    page["leader"] = lease.map_or(Value::Null, |lease| {
        json!({
            "holder": lease.holder.id.as_str(),
            "token": lease.token.number(),
            "began_ago_ms": in_json(lease.held_for + age),
            "remaining_ms": in_json(lease.remaining.saturating_sub(age)),
        })
    });
    (StatusCode::OK, JSON, format!("{page}\n"))
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::super::board::{Alone, Left};
    use super::*;
    use tenure::Election;
    use tenure::contract::{Lease, Release};
    use tenure::tooling;

    #[tokio::test]
    async fn an_answer_that_came_late_shows_nobody() {
        let alone = Alone::new("late-answer").await;
        let (election, board) = (&alone.election, &alone.board);
        let mut events = election.events();
        let _leadership = election.campaign().await.unwrap();
        while matches!(board.health(), Health::Idle) {
            board.take_in(&events.recv().await.unwrap());
        }
        let look = board.look().await;
        for (age, status) in [(FRESH, 200), (FRESH + Duration::from_millis(1), 503)] {
            let (told, _, body) = leader_of(board, look.clone(), age);
            let page: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(told.as_u16(), status, "{body}");
            assert_eq!(page["leader"].is_object(), status == 200, "{body}");
            assert_eq!(page["leads"] == true, status == 200, "{body}");
        }
    }

    /// What the store has said is right for as long as the lease it told of lasts.
    #[tokio::test]
    async fn a_lease_that_has_ended_since_the_store_told_of_it_is_nobodys() {
        let alone = Alone::new("ended-since").await;
        let (election, board) = (&alone.election, &alone.board);
        let leadership = election.campaign().await.unwrap();
        board.begins(leadership.token(), leadership.until());
        let found = board.look().await.found.unwrap().unwrap();
        let told = |age: u64| {
            let look = Look {
                asked_at: clock_now(),
                answered_at: clock_now(),
                found: Ok(Some(Lease {
                    remaining: Duration::from_millis(700),
                    held_for: Duration::from_millis(50),
                    ..found.clone()
                })),
            };
            let (status, _, body) = leader_of(board, look, Duration::from_millis(age));
            assert_eq!(status.as_u16(), 200, "{body}");
            serde_json::from_str::<Value>(&body).unwrap()
        };
        let before = told(600);
        assert_eq!(before["leads"], true);
        assert_eq!(
            (
                &before["leader"]["remaining_ms"],
                &before["leader"]["began_ago_ms"]
            ),
            (&json!(100), &json!(650))
        );
        let after = told(700);
        assert_eq!((&after["leads"], &after["leader"]), (&json!(false), &Value::Null));
    }

    /// A kubelet restarts what cannot end its own work.
    #[tokio::test]
    async fn work_without_its_term_fails_the_page_that_says_whether_this_process_is_well() {
        let alone = Alone::new("not-live").await;
        let (election, board) = (&alone.election, &alone.board);
        let mut events = election.events();
        let leadership = election.campaign().await.unwrap();
        let is_live = || live(board).0.as_u16();
        assert_eq!(is_live(), 200, "it waits");
        board.begins(leadership.token(), leadership.until());
        assert_eq!(is_live(), 200, "it leads");
        leadership.step_down().await;
        while let Ok(event) = events.try_recv() {
            board.take_in(&event);
        }
        let (status, _, body) = live(board);
        assert_eq!(status.as_u16(), 503, "{body}");
        assert!(body.contains("lease \"job\""), "{body}");
        board.ends(Left::Nothing);
        assert_eq!(is_live(), 200, "its work is gone");
    }

    /// It was vacated by force, and then taken by another, and this process has heard of neither.
    #[tokio::test]
    async fn a_process_whose_term_was_taken_is_not_shown_to_lead() {
        let alone = Alone::new("taken-away").await;
        let (store, election, own) = (&alone.store, &alone.election, &alone.board);
        let leadership = election.campaign().await.unwrap();
        let token = leadership.token();
        own.begins(token, leadership.until());
        let page = async || {
            let look = Look {
                asked_at: clock_now(),
                answered_at: clock_now(),
                found: store.get(election.name()).await,
            };
            let (status, _, body) = leader_of(own, look, Duration::ZERO);
            assert_eq!(status.as_u16(), 200, "{body}");
            assert!(
                matches!(own.health(), Health::Leads(of, _) if of == token),
                "it believes"
            );
            serde_json::from_str::<Value>(&body).unwrap()
        };
        let led = page().await;
        assert_eq!(
            (&led["leads"], &led["own_token"]),
            (&json!(true), &json!(token.number()))
        );
        // The same label and token, and another process: revisions that went back.
        let mut other = own.candidate().unwrap().clone();
        other.incarnation = tooling::candidate(tooling::default_candidate_id()).incarnation;
        let lease = store.get(election.name()).await.unwrap().unwrap();
        assert!(own.is_own(&lease, token));
        assert!(!own.is_own(
            &Lease {
                holder: other,
                ..lease.clone()
            },
            token
        ));
        let vacating = Release {
            name: lease.name,
            incarnation: lease.holder.incarnation,
            token,
            attempt: lease.attempt,
        };
        store.release(&[vacating]).await.remove(0).unwrap();
        let vacated = page().await;
        assert_eq!(
            (&vacated["leads"], &vacated["own_token"], &vacated["leader"]),
            (&json!(false), &Value::Null, &Value::Null)
        );
        let rival = Election::builder("job", store.clone()).build().unwrap();
        let next = rival.campaign().await.unwrap();
        let taken = page().await;
        assert_eq!(
            (&taken["leads"], &taken["own_token"]),
            (&json!(false), &Value::Null)
        );
        assert_eq!(taken["leader"]["token"], next.token().number());
    }
}
