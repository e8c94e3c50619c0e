//! A command of the user's for `/bin/sh -c`, killed with its group when it takes too long or is no longer
//! wanted.

use super::system::{die_with_parent, signals_as_at_start};
use crate::arguments::own_variables;
use crate::manager;
use crate::output::StandardError;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStderr, Command};

/// What a shell command finds in its environment, beside this process's own.
pub(crate) type Environment = Vec<(&'static str, OsString)>;

/// Where it writes what it prints. This process's standard output is the command's, for data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Output {
    /// Beside the messages.
    StandardError,
    /// What it says of itself is its exit code. Its errors are passed on, so that whoever does not read them
    /// fails no probe.
    Nowhere,
}

const SHELL: &str = "/bin/sh";

/// How long one that was killed is waited for: in state D, or as another user, it does not end.
const KILLED_TIME_MAX: Duration = Duration::from_secs(1);

/// How much of what it says is passed on at once.
const CHUNK_BYTES: usize = 1024;

/// Runs it to its end, for at most `time_max`.
///
/// # Errors
/// In words: it cannot be started, has failed, or was killed.
pub(super) async fn run_in_shell(
    command: &str,
    environment: &Environment,
    output: Output,
    time_max: Duration,
) -> Result<(), String> {
    let (printed, errors) = match output {
        Output::StandardError => {
            let duplicate = std::io::stderr().as_fd().try_clone_to_owned();
            let duplicate = duplicate.map_err(|error| format!("sh: {error}"))?;
            (Stdio::from(duplicate), Stdio::inherit())
        }
        Output::Nowhere => (Stdio::null(), Stdio::piped()),
    };
    // Starting it holds this thread up until it has become the shell, which it cannot on a file system that
    // is away: one that is there for every program, and not the first that PATH has, which may be elsewhere.
    let mut shell = Command::new(SHELL);
    for variable in own_variables() {
        shell.env_remove(variable);
    }
    // As the command: a `tenure lock` in it would tell the manager that this process ends.
    for variable in manager::VARIABLES {
        shell.env_remove(variable);
    }
    shell
        .arg0("sh")
        .args(["-c", command])
        .envs(environment.iter().map(|(variable, value)| (variable, value)))
        .stdin(Stdio::null())
        .stdout(printed)
        .stderr(errors)
        .process_group(0)
        .kill_on_drop(true);
    signals_as_at_start(shell.as_std_mut());
    if output == Output::Nowhere {
        // Nobody is left to hear its answer; a hook has its own to do. As this runs on the main thread, that
        // is the parent.
        die_with_parent(shell.as_std_mut());
    }
    let mut running = shell.spawn().map_err(|error| format!("sh: {error}"))?;
    // Dropped before `running`: while that has not been waited for, the number is still its group's.
    let mut group = Group::of(running.id());
    let mut errors = running.stderr.take();
    let ended = tokio::time::timeout(time_max, async {
        tokio::select! {
            ended = running.wait() => ended,
            never = pass_on(&mut errors) => match never {},
        }
    });
    match ended.await {
        Ok(ended) => {
            // What it had said by then; what it has left behind need not be heard.
            let _ = tokio::time::timeout(Duration::ZERO, pass_on(&mut errors)).await;
            group.leave();
            match ended {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(status.to_string()),
                Err(error) => Err(error.to_string()),
            }
        }
        Err(_late) => {
            group.kill();
            let killed = tokio::time::timeout(KILLED_TIME_MAX, running.wait()).await;
            group.leave();
            let lives_on = if killed.is_err() {
                ", and it cannot be killed"
            } else {
                ""
            };
            Err(format!("no answer within {time_max:?}{lives_on}"))
        }
    }
}

/// Passes on what it says, for as long as this is waited for.
async fn pass_on(errors: &mut Option<ChildStderr>) -> Infallible {
    if let Some(errors) = errors {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = errors.read(&mut chunk).await {
            let _ = StandardError.write_all(&chunk[..length]);
            // One that never stops keeps this process from nothing else.
            tokio::task::yield_now().await;
        }
    }
    std::future::pending().await
}

/// The group of a shell that nobody has waited for yet, killed when this is dropped.
struct Group(Option<Pid>);

/// The shells that are waited for: whoever reaps one of them takes its status from who waits.
static AWAITED: Mutex<Option<HashSet<Pid>>> = Mutex::new(None);

impl Group {
    fn of(shell: Option<u32>) -> Self {
        let shell = shell.and_then(|number| Pid::from_raw(i32::try_from(number).ok()?));
        if let Some(shell) = shell {
            awaited().get_or_insert_default().insert(shell);
        }
        Self(shell)
    }

    fn kill(&self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Leaves alone what is left of it: the number may be another's by now.
    fn leave(&mut self) {
        if let Some(shell) = self.0.take() {
            awaited().get_or_insert_default().remove(&shell);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        self.leave();
    }
}

/// The shells that are waited for now.
pub(super) fn awaited_shells() -> HashSet<Pid> {
    awaited().clone().unwrap_or_default()
}

fn awaited() -> MutexGuard<'static, Option<HashSet<Pid>>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}
