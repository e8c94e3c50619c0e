//! The service: `GET /balance`, `PUT /balance`, `GET /history`.

use crate::Outcome;
use crate::arguments::Serve;
use crate::book::Book;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tenure::http::{FenceLayer, FencingHeader, Gate, Protection};
use tenure::{LeaseName, ResourceName, Watermark};
use tokio::net::TcpListener;

#[derive(Clone)]
struct Ledger {
    book: Book,
    dawdle: Duration,
}

/// What a handler answers with when it fails.
type Failure = (StatusCode, String);

pub async fn run(options: Serve) -> Outcome<ExitCode> {
    let ledger = Ledger {
        book: Book::open(&options.file)?,
        dawdle: options.dawdle,
    };
    let mut service = Router::new()
        .route("/balance", get(balance).put(set_balance))
        .route("/history", get(history))
        .with_state(ledger);
    if !options.unfenced {
        // The marks are kept in a file beside the state, so that both survive the same things.
        let gate = Gate::new(Arc::new(Watermark::open(options.file.with_extension("marks"))?));
        service = service.layer(FenceLayer::new(
            gate,
            Protection {
                resource: ResourceName::new("balance")?,
                lease: LeaseName::new(&options.lease)?,
            },
        ));
    }
    let listener = TcpListener::bind(options.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, service).await?;
    Ok(ExitCode::SUCCESS)
}

async fn balance(State(ledger): State<Ledger>) -> Result<String, Failure> {
    blocking(move || ledger.book.balance())
        .await
        .map(|balance| balance.to_string())
}

async fn set_balance(State(ledger): State<Ledger>, headers: HeaderMap, body: String) -> Result<(), Failure> {
    let invalid = |error: String| (StatusCode::BAD_REQUEST, error);
    let after: i64 = body
        .parse()
        .map_err(|_| invalid("the body must be a whole number".to_owned()))?;
    // Who comes through the fence has one; without the fence, this is all that is ever looked at.
    let presented = FencingHeader::find(&headers).map_err(|error| invalid(error.to_string()))?;
    let token = presented.map_or(0, |FencingHeader(term)| term.token.signed());
    if !ledger.dawdle.is_zero() {
        tokio::time::sleep(ledger.dawdle.mul_f64(fastrand::f64())).await;
    }
    blocking(move || ledger.book.set(token, after)).await
}

async fn history(State(ledger): State<Ledger>) -> Result<String, Failure> {
    let entries = blocking(move || ledger.book.history()).await?;
    let mut lines = String::new();
    for entry in entries {
        let _ = writeln!(lines, "{} {} {}", entry.token, entry.before, entry.after);
    }
    Ok(lines)
}

/// The handler waits for the thread, so the request stays inside the fence until the disk has the change.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let failed = |error: &dyn std::fmt::Display| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(failed(&error)),
        Err(error) => Err(failed(&error)),
    }
}
