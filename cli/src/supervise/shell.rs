//! A command of the user's for `sh -c`, killed with its group when it takes too long.

use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// What a shell command finds in its environment, beside this process's own.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// Runs it to its end, for at most `time_max`.
///
/// # Errors
/// In words: it cannot be started, has failed, or was killed.
pub(super) async fn run_in_shell(
    command: &str,
    environment: &Environment,
    time_max: Duration,
) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .envs(environment.iter().map(|(variable, value)| (variable, value)))
        .stdin(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    let mut running = shell.spawn().map_err(|error| format!("sh: {error}"))?;
    let group = running.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    match tokio::time::timeout(time_max, running.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(status.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_late) => {
            // It is not reaped before it is waited for: the number is still its group's.
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = running.wait().await;
            Err(format!("no answer within {time_max:?}"))
        }
    }
}
