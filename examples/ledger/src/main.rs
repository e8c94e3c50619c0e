//! A ledger behind HTTP whose balance only the leader may change.
//!
//! Start reading at `serve.rs`, which is the service and its fence, and `work.rs`, which is the leader.

mod arguments;
mod book;
mod client;
mod history;
mod serve;
mod storm;
mod work;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

/// What ends a command early, in one line for a person.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .init();
    let command = async {
        match Arguments::parse().command {
            Command::Serve(options) => serve::run(options).await,
            Command::Work(options) => work::run(options).await,
            Command::Storm(options) => storm::run(options).await,
        }
    };
    let outcome = tokio::select! {
        outcome = command => outcome,
        end = asked_to_end() => end.and_then(|signal| Err(format!("ended by {signal}").into())),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("ledger: {error}");
        ExitCode::from(2)
    })
}

/// What systemd and Kubernetes stop a service with, and Ctrl-C. What was under way is dropped, the work first
/// and then the leadership, which gives the lease back: another leads at once.
async fn asked_to_end() -> Outcome<&'static str> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    Ok(tokio::select! {
        _ = tokio::signal::ctrl_c() => "Ctrl-C",
        _ = terminated.recv() => "SIGTERM",
    })
}
