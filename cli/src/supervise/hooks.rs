//! Commands of the user's that hear of terms: beside the work, never before or instead of it.

use super::shell::{Environment, Output, run_in_shell};
use crate::output::Voice;
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;

/// What to run when, for `/bin/sh -c`.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookCommands {
    pub(crate) on_elected: Option<String>,
    pub(crate) on_lost: Option<String>,
    pub(crate) time_max: Duration,
}

/// How many hooks may wait for the one that runs; what comes then is not run, and that is said.
const WAITING_MAX: usize = 16;

/// Runs the hooks one after the other, in the order of what they hear of, and tells of those that fail. What
/// fails or hangs changes nothing, and holds up nothing but the hooks after it.
pub(crate) struct Hooks {
    commands: HookCommands,
    queue: mpsc::Sender<Hook>,
    running: JoinHandle<()>,
    voice: Voice,
}

/// A hook whose turn will come.
struct Hook {
    option: &'static str,
    command: String,
    environment: Environment,
}

impl Hooks {
    pub(crate) fn new(commands: HookCommands, voice: Voice) -> Self {
        let time_max = commands.time_max;
        let (queue, mut waiting) = mpsc::channel::<Hook>(WAITING_MAX);
        let running = tokio::spawn(async move {
            while let Some(hook) = waiting.recv().await {
                let run = run_in_shell(&hook.command, &hook.environment, Output::StandardError, time_max);
                if let Err(why) = run.await {
                    hook.failed(&why, voice);
                }
            }
        });
        Self {
            commands,
            queue,
            running,
            voice,
        }
    }

    /// A term has begun.
    pub(crate) fn elected(&mut self, environment: Environment) {
        self.start("--on-elected", self.commands.on_elected.clone(), environment);
    }

    /// A term has ended, for this reason, and its lease was given back if it could be.
    pub(crate) fn lost(&mut self, mut environment: Environment, why: String) {
        environment.push(("TENURE_WHY", why.into()));
        self.start("--on-lost", self.commands.on_lost.clone(), environment);
    }

    fn start(&mut self, option: &'static str, command: Option<String>, environment: Environment) {
        let Some(command) = command else { return };
        let hook = Hook {
            option,
            command,
            environment,
        };
        if let Err(TrySendError::Full(hook) | TrySendError::Closed(hook)) = self.queue.try_send(hook) {
            hook.failed(&format!("not run, as {WAITING_MAX} wait before it"), self.voice);
        }
    }

    /// Waits for those that still run or wait, each for its time at most.
    pub(crate) async fn ended(self) {
        drop(self.queue);
        let _ = self.running.await;
    }
}

impl Hook {
    /// Its words are not shown: they may hold a password, as the URL of a chat does.
    fn failed(&self, why: &str, voice: Voice) {
        let text = format!("{} failed: {why}", self.option);
        voice.warn("hook_failed", &text, json!({"hook": self.option, "why": why}));
    }
}
