//! The pages: `/metrics`, `/livez`, `/readyz`, `/leader`.

use super::board::{Board, Health};
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

/// Who leads, as the store says now: never somebody whose lease has ended meanwhile.
async fn leader(board: &Board) -> Page {
    let look = board.look().await;
    let age = clock_now().since(look.asked_at);
    let (leads, token) = match board.health() {
        Health::Leads(token, _) => (true, Some(token.number())),
        Health::Idle | Health::WorksWithoutTerm => (false, None),
    };
    let mut page = json!({
        "lease": board.name.as_str(),
        "candidate": board.candidate,
        "leads": leads,
        "own_token": token,
        "asked_ago_ms": milliseconds(age),
    });
    let lease = match look.found {
        Ok(lease) => lease,
        Err(error) => {
            page["error"] = json!(error.to_string());
            return (StatusCode::SERVICE_UNAVAILABLE, JSON, format!("{page}\n"));
        }
    };
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
