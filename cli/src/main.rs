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

use arguments::{Cli, Form};
use clap::FromArgMatches;
use exit::{Code, End, Failure, of_signal};
use output::Voice;
use std::process::ExitCode;
use supervise::system::end_by;

fn main() -> ExitCode {
    let parsed = arguments::definitions().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed.map_err(arguments::without_urls) {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() && arguments::ask_for_json() => {
            let failure = Failure::from(error);
            Voice::new(Form::Json, false).fail(&failure);
            return ExitCode::from(failure.code);
        }
        Err(error) => error.exit(),
    };
    let (_, matches) = matches.subcommand().expect("a subcommand is required");
    let voice = Voice::new(cli.global.output, cli.global.quiet);
    let end = log::start(&cli.global).and_then(|()| on_this_thread(commands::run(cli, matches, voice)));
    if let Err(failure) = &end {
        voice.fail(failure);
    }
    output::flush();
    match end {
        Ok(End::Code(code)) => ExitCode::from(code),
        Ok(End::Signal(signal)) => {
            end_by(signal);
            ExitCode::from(of_signal(signal.as_raw()))
        }
        Err(failure) => ExitCode::from(failure.code),
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
