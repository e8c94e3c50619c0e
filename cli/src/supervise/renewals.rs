//! What a term's renewals come to, for people.

use crate::output::{Voice, in_json, short};
use serde_json::json;
use tenure::Event;

/// How the renewals are going.
#[derive(Default)]
pub(super) struct Renewals {
    last_error: Option<String>,
}

impl Renewals {
    /// Takes in what happened, and says that an outage began or ended.
    pub(super) fn take_in(&mut self, event: &Event, voice: Voice) {
        match event {
            Event::RenewalFailed {
                name,
                token,
                error,
                remaining,
            } => {
                let first = self.last_error.is_none();
                self.last_error = Some(error.message.clone());
                // Once per outage: the tries come every few moments.
                if first {
                    let text = format!(
                        "{} until the deadline; renewal failed: {error}",
                        short(*remaining)
                    );
                    let fields = json!({
                        "lease": name.as_str(), "token": token.number(), "remaining_ms": in_json(*remaining),
                    });
                    voice.say("renewal_failed", &format!("lease \"{name}\": {text}"), fields);
                }
            }
            Event::Renewed { name, token, .. } => {
                if self.last_error.take().is_some() {
                    let fields = json!({"lease": name.as_str(), "token": token.number()});
                    voice.say("renewed", &format!("lease \"{name}\": renewed again"), fields);
                }
            }
            Event::Standby { .. }
            | Event::AttemptFailed { .. }
            | Event::CampaignEnded { .. }
            | Event::Withdrawn { .. }
            | Event::Acquired { .. }
            | Event::Doubted { .. }
            | Event::Reassured { .. }
            | Event::Stuck { .. }
            | Event::AskedToStepDown { .. }
            | Event::Ended { .. }
            | Event::ReleaseFailed { .. }
            | Event::Departed { .. } => {}
        }
    }

    /// `what`, with the last error where that says more.
    pub(super) fn explain(&self, what: &str) -> String {
        match &self.last_error {
            Some(error) if !what.contains(error.as_str()) => format!("{what} ({error})"),
            Some(_) | None => what.to_owned(),
        }
    }
}
