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
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("settlement: {error}");
            ExitCode::from(2)
        }
    }
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
