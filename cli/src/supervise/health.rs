//! Asking a command of the user's whether the work is well.

use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// What is asked, and how often it may fail.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    /// For `sh -c`.
    pub(crate) command: String,
    pub(crate) every: Duration,
    pub(crate) time_max: Duration,
    pub(crate) failures_max: u32,
}

impl Health {
    /// Returns when it has failed so often in a row, and says how it failed last.
    pub(super) async fn failed(&self, environment: &[(&'static str, String)]) -> String {
        let mut failures = 0;
        loop {
            tokio::time::sleep(self.every).await;
            match self.ask(environment).await {
                Ok(()) => failures = 0,
                Err(why) => {
                    failures += 1;
                    if failures >= self.failures_max {
                        return format!("--health-cmd failed {failures} times in a row: {why}");
                    }
                }
            }
        }
    }

    async fn ask(&self, environment: &[(&'static str, String)]) -> Result<(), String> {
        let mut asked = Command::new("sh");
        asked
            .args(["-c", &self.command])
            .envs(environment.iter().map(|(variable, value)| (variable, value)))
            .stdin(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        let mut asked = asked.spawn().map_err(|error| format!("sh: {error}"))?;
        let group = asked.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        match tokio::time::timeout(self.time_max, asked.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(status.to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_late) => {
                // It is not reaped before it is waited for: the number is still its group's.
                if let Some(group) = group {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = asked.wait().await;
                Err(format!("no answer within {:?}", self.time_max))
            }
        }
    }
}
