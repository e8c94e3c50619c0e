//! Three instances settle a file of payments exactly once, whatever happens to the one that leads.
//!
//! Start reading at `instance.rs`, which is the pattern, and `ledger/sqlite.rs`, which is its fence.

mod arguments;
mod drill;
mod instance;
mod ledger;
mod pause;
mod payments;
mod report;
mod summary;
mod verify;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

/// What ends a command early, in one line for a person.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// One thread is enough, and it may block: an election renews its lease on a thread of its own.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let outcome = tokio::select! {
        outcome = execute(Arguments::parse().command) => outcome,
        end = asked_to_end() => end.and_then(|signal| Err(format!("ended by {signal}").into())),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("settlement: {error}");
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

async fn execute(command: Command) -> Outcome<ExitCode> {
    match command {
        Command::Generate(options) => payments::generate(&options.file, options.payments, options.seed)
            .map(|written| println!("{written}"))
            .map(|()| ExitCode::SUCCESS),
        Command::Run(options) => instance::run(options).await.map(|()| ExitCode::SUCCESS),
        Command::Verify(options) => verify::run(&options).await,
        Command::Drill(options) => drill::run(&options).await,
    }
}
