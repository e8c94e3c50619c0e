//! Commands of the user's that hear of terms: beside the work, never before or instead of it.

use super::shell::{Environment, run_in_shell};
use crate::output::{Voice, clean};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;

/// What to run when, for `sh -c`.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookCommands {
    pub(crate) on_elected: Option<String>,
    pub(crate) on_lost: Option<String>,
    pub(crate) time_max: Duration,
}

/// Runs the hooks, and tells of those that fail. What fails or hangs changes nothing.
pub(crate) struct Hooks {
    commands: HookCommands,
    running: JoinSet<()>,
    voice: Voice,
}

impl Hooks {
    pub(crate) fn new(commands: HookCommands, voice: Voice) -> Self {
        Self {
            commands,
            running: JoinSet::new(),
            voice,
        }
    }

    /// A term has begun.
    pub(crate) fn elected(&mut self, environment: Environment) {
        self.start("--on-elected", self.commands.on_elected.clone(), environment);
    }

    /// A term has ended, for this reason, and its lease was given back if it could be.
    pub(crate) fn lost(&mut self, mut environment: Environment, why: String) {
        environment.push(("TENURE_WHY", why));
        self.start("--on-lost", self.commands.on_lost.clone(), environment);
    }

    fn start(&mut self, option: &'static str, command: Option<String>, environment: Environment) {
        let Some(command) = command else { return };
        let (voice, time_max) = (self.voice, self.commands.time_max);
        self.running.spawn(async move {
            if let Err(why) = run_in_shell(&command, &environment, time_max).await {
                let text = format!("{option} \"{}\" failed: {why}", clean(&command));
                voice.say("hook_failed", &text, json!({"hook": option, "why": why}));
            }
        });
        // What has ended makes room: at most two for each term of the last few seconds are left.
        while self.running.try_join_next().is_some() {}
    }

    /// Waits for those that still run, each for its time at most.
    pub(crate) async fn ended(mut self) {
        while self.running.join_next().await.is_some() {}
    }
}
