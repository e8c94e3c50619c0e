//! What a command leaves behind when it ends by itself: work in the background would end unfinished, and
//! nobody would know.

use crate::output::Voice;
use crate::warden::tree::{living_below, name_of};
use rustix::process::Pid;
use serde_json::json;
use std::process::ExitStatus;
use tenure::Leadership;

/// How many are named.
const NAMED_MAX: usize = 3;

/// How many are looked for: who has left more has left many.
const COUNTED_MAX: usize = 1000;

/// Living processes that a command has left.
#[derive(Default)]
pub(super) struct Leftovers {
    pids: Vec<Pid>,
    /// The first of them that can be named.
    named: Vec<(Pid, String)>,
}

impl Leftovers {
    /// Those below the warden, beside the command.
    pub(super) fn below(warden: Pid, command: Pid) -> Self {
        let mut pids = living_below(warden, COUNTED_MAX);
        pids.retain(|pid| *pid != command);
        let first = pids.iter().take(NAMED_MAX);
        Self {
            named: first.filter_map(|pid| Some((*pid, name_of(*pid)?))).collect(),
            pids,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.pids.len()
    }

    /// Says that they are being ended, if there are any.
    pub(super) fn say(&self, leadership: &Leadership, command: &str, status: ExitStatus, voice: Voice) {
        if self.pids.is_empty() {
            return;
        }
        let (name, token) = (leadership.name().as_str(), leadership.token().number());
        let mut shown: Vec<String> = self
            .named
            .iter()
            .map(|(pid, name)| format!("pid {} {name}", pid.as_raw_pid()))
            .collect();
        if self.count() > shown.len() {
            shown.push("…".to_owned());
        }
        let text = format!(
            "lease \"{name}\": {command} ended with {status} and left {} ({}), which SIGTERM goes to; keep such work in the \
             foreground, or have the command wait for it (setsid --wait)",
            in_words(self.count()),
            shown.join(", ")
        );
        let fields = json!({"lease": name, "token": token, "left": self.count()});
        voice.warn("left_behind", &text, fields);
    }
}

/// So many processes, for people.
pub(crate) fn in_words(left: usize) -> String {
    match left {
        1 => "1 process".to_owned(),
        COUNTED_MAX.. => format!("{COUNTED_MAX} processes or more"),
        _ => format!("{left} processes"),
    }
}
