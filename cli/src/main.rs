//! The `tenure` command: runs a command while this process leads, and shows and tends leases.

mod arguments;
mod commands;
mod endpoint;
mod exit;
mod log;
mod manager;
mod output;
mod place;
mod recording;
mod supervise;
mod warden;

use arguments::Cli;
use clap::{CommandFactory, FromArgMatches};
use exit::{Code, Failure};
use output::Voice;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let (_, matches) = matches.subcommand().expect("a subcommand is required");
    let voice = Voice::new(cli.global.output, cli.global.quiet);
    match log::start(&cli.global).and_then(|()| on_this_thread(commands::run(cli, matches, voice))) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            voice.fail(&failure);
            ExitCode::from(failure.code)
        }
    }
}

/// Runs on the main thread alone: a child that is to die with its parent dies with the *thread* that started
/// it, and this one lives as long as the process.
fn on_this_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::new(
                Code::Internal,
                format!("cannot start: {error}; is the limit of open files reached?"),
            )
        })?
        .block_on(work)
}
