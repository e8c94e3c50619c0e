//! Orders in MongoDB that only the leader ships, many in one round trip.
//!
//! Start reading at `ship.rs`, which is the leader and its fence.

mod arguments;
mod book;
mod ship;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

/// What ends a command early, in one line for a person.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    let command = async {
        match Arguments::parse().command {
            Command::Make(options) => book::make(options).await,
            Command::Ship(options) => ship::run(options).await,
        }
    };
    let outcome = tokio::select! {
        outcome = command => outcome,
        end = asked_to_end() => end.and_then(|signal| Err(format!("ended by {signal}").into())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("orders: {error}");
            ExitCode::from(2)
        }
    }
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
