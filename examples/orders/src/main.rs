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
    let outcome = match Arguments::parse().command {
        Command::Make(options) => book::make(options).await,
        Command::Ship(options) => ship::run(options).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("orders: {error}");
            ExitCode::from(2)
        }
    }
}
