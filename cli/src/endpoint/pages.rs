//! The pages: `/metrics`, `/livez`, `/readyz`, `/leader`.

use super::board::{Board, FRESH, Health, Look};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use hyper::{Method, Response, StatusCode};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use std::time::Duration;
use tenure::clock_now;
use tenure::core::Occupancy;

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

/// Fails when the command runs although its term is over: then this process cannot end it, and is better ended.
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

/// Who leads, as the store has said to whoever asked so long ago: never somebody whose lease has ended meanwhile, and nobody
/// after an answer that came too late.
fn leader_of(board: &Board, look: Look, age: Duration) -> Page {
    let mut page = json!({
        "lease": board.name.as_str(),
        "candidate": board.candidate,
        // Not known, until the store has said it.
        "leads": null,
        "own_token": null,
        "asked_ago_ms": milliseconds(age),
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
    let (leads, token) = match board.health() {
        Health::Leads(token, _) => (true, Some(token.number())),
        Health::Idle | Health::WorksWithoutTerm => (false, None),
    };
    page["leads"] = json!(leads);
    page["own_token"] = json!(token);
    let holder = lease.and_then(|lease| {
        let remaining = lease.remaining.saturating_sub(age);
        let is_held = lease.occupancy() == Occupancy::Held && !remaining.is_zero();
        is_held.then(|| {
            json!({
                "holder": lease.holder.id.as_str(),
                "token": lease.token.number(),
                "held_for_ms": milliseconds(lease.held_for + age),
                "remaining_ms": milliseconds(remaining),
            })
        })
    });
    page["leader"] = holder.unwrap_or(Value::Null);
    (StatusCode::OK, JSON, format!("{page}\n"))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use tenure::{Election, Registry};
    use tenure_testkit::ScratchDir;

    #[tokio::test]
    async fn an_answer_that_came_late_shows_nobody() {
        let folder = ScratchDir::new("late-answer");
        let url = format!("sqlite:{}", folder.join("leases.db").display());
        let store = Registry::connect(&url).await.unwrap();
        let election = Election::builder("job", store.clone()).build().unwrap();
        let mut events = election.events();
        let _leadership = election.campaign().await.unwrap();
        let board = Board::new(election.name().clone(), "one".to_owned(), store);
        while matches!(board.health(), Health::Idle) {
            board.take_in(&events.recv().await.unwrap());
        }
        let look = board.look().await;
        for (age, status) in [(FRESH, 200), (FRESH + Duration::from_millis(1), 503)] {
            let (told, _, body) = leader_of(&board, look.clone(), age);
            let page: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(told.as_u16(), status, "{body}");
            assert_eq!(page["leader"].is_object(), status == 200, "{body}");
            assert_eq!(page["leads"] == true, status == 200, "{body}");
        }
    }
}
