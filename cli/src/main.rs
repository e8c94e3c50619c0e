//! The `tenure` command: runs a command while this process leads, and shows and tends leases.

mod arguments;
mod commands;
mod endpoint;
mod exit;
mod housekeeping;
mod log;
mod manager;
mod output;
mod place;
mod recording;
mod supervise;
mod warden;

use arguments::{Cli, Command, Form, GlobalArguments};
use clap::FromArgMatches;
use exit::{Code, End, Failure, of_signal};
use output::Voice;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use supervise::system::end_by;

fn main() -> ExitCode {
    let parsed = arguments::definitions().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (mut cli, matches) = match parsed.map_err(arguments::without_urls) {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() => return refuse(error),
        // Help, and the version.
        Err(error) => error.exit(),
    };
    let (_, matches) = matches.subcommand().expect("a subcommand is required");
    if let Err(error) = cli.global.settle(matches) {
        return refuse(error);
    }
    let voice = Voice::new(cli.global.output, cli.global.quiet);
    let end = unless_it_panics(|| {
        start_log(&cli)?;
        on_this_thread(commands::run(cli, matches, voice))
    });
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

/// Says what is wrong with the arguments, in the form that they ask for as far as they can be understood.
fn refuse(error: clap::Error) -> ExitCode {
    let form = match arguments::ask_for_json() {
        true => Form::Json,
        false => Form::Text,
    };
    let failure = Failure::from(error);
    Voice::new(form, false).fail(&failure);
    ExitCode::from(failure.code)
}

/// Starts the log, as is said.
///
/// # Errors
/// A level that does not exist; but for the warden. It has only the command's variables to go by, and whoever
/// starts it was told otherwise where they say nothing of use.
fn start_log(cli: &Cli) -> Result<(), Failure> {
    log::start(&cli.global).or_else(|failure| match cli.command {
        Command::Warden { .. } => log::start(&GlobalArguments {
            log: None,
            ..cli.global.clone()
        }),
        _ => Err(failure),
    })
}

/// Runs on the main thread alone: a child that is to die with its parent dies with the *thread* that started
/// it, and this one lives as long as the process.
///
/// Waits for nothing else: a name that is being looked up, on a thread of its own, may take for ever.
fn on_this_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = has_room_for_a_runtime()
        .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build());
    let runtime = runtime.map_err(|error| {
        Failure::new(
            Code::Internal,
            format!("cannot start: {error}; is the limit of open files reached?"),
        )
    })?;
    let end = runtime.block_on(work);
    runtime.shutdown_background();
    end
}

/// Whether there are the six files to be had that a runtime opens. Without those for its signals, which the
/// first one of a process opens, it panics.
fn has_room_for_a_runtime() -> io::Result<()> {
    let _six = [UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?];
    Ok(())
}

/// What `work` comes to, or that it has panicked, where nothing is supervised any more or yet: that is a
/// [fault](supervise::EndedByFault) at once.
///
/// # Errors
/// Those of the work.
fn unless_it_panics<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_said| {
        // Its own words are on standard error, where panics go.
        let message = "a fault of tenure's own, a panic: please report what is said of it above";
        Err(Failure::new(Code::Internal, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_panic_of_what_supervises_nothing_ends_as_a_fault() {
        let ended = unless_it_panics(|| -> Result<(), Failure> { panic!("on purpose") });
        assert_eq!(ended.unwrap_err().code, Code::Internal.number());
    }

    #[test]
    fn the_end_waits_for_no_look_up_that_hangs() {
        let (until_end, end) = mpsc::channel::<()>();
        let (ended, waiting) = mpsc::channel();
        std::thread::spawn(move || {
            let work = async {
                tokio::task::spawn_blocking(move || end.recv());
                Ok(())
            };
            let _ = ended.send(on_this_thread(work).is_ok());
        });
        assert_eq!(waiting.recv_timeout(std::time::Duration::from_secs(30)), Ok(true));
        drop(until_end);
    }
}
