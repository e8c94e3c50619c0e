//! A lease that nothing of the work needs any more: it is given back, or why not is said.

use super::LEAVING_REQUESTS;
use super::turn::Turn;
use crate::output::{Voice, in_json, short};
use crate::recording::TermSpan;
use serde_json::json;
use std::time::Duration;
use tenure::contract::{Departure, Fault};
use tenure::{Event, FencingToken, Leadership, LeaseName, ReleaseOutcome, StoreError};
use tokio::time::Instant;

/// A lease that may be held yet, though nobody needs it.
pub(super) struct NotGivenBack {
    name: LeaseName,
    token: FencingToken,
    /// What the last release has failed for; none where the store has said nothing.
    error: Option<StoreError>,
    waited: Duration,
    /// In what time it has expired by itself, at most, if it does.
    remaining: Duration,
}

impl NotGivenBack {
    /// How the term has ended, and why it may be held yet.
    pub(super) fn beside(&self, how: &str) -> String {
        match &self.error {
            Some(error) => format!("{how}; not confirmed: {error}"),
            None => format!("{how}; {}", self.why()),
        }
    }

    fn why(&self) -> String {
        self.error.as_ref().map_or_else(
            || format!("not confirmed within {}", short(self.waited)),
            ToString::to_string,
        )
    }

    /// Not where nobody goes by the record.
    fn expires_by_itself(&self) -> bool {
        let error = self.error.as_ref();
        error.is_none_or(|error| error.fault != Fault::Unreadable)
    }

    pub(super) fn say(&self, voice: Voice) {
        let fields = json!({
            "lease": self.name.as_str(),
            "token": self.token.number(),
            "fault": self.error.as_ref().map(|error| error.fault.word()),
            "why": self.why(),
            "remaining_ms": self.expires_by_itself().then(|| in_json(self.remaining)),
        });
        voice.warn("not_given_back", &self.text(), fields);
    }

    fn text(&self) -> String {
        let (name, token, why) = (&self.name, self.token, self.why());
        let end = match self.expires_by_itself() {
            true => format!("expires by itself within {}", short(self.remaining)),
            false => "keeps others out until the record is mended".to_owned(),
        };
        format!(
            "lease \"{name}\": term {token} could not be given back for certain ({why}); unless it was, it {end}; tenure doctor \
             examines the store"
        )
    }

    /// The last that was said of its release holds.
    fn take_in(&mut self, event: Event) {
        let (token, error, remaining) = match event {
            Event::ReleaseFailed {
                token,
                error,
                remaining,
                ..
            }
            | Event::Departed {
                token,
                departure: Departure::Unconfirmed { error, remaining },
                ..
            } => (token, error, remaining),
            _ => return,
        };
        if token == self.token {
            (self.error, self.remaining) = (Some(error), remaining);
        }
    }
}

impl Turn<'_> {
    /// Gives the lease back, unless the store does not answer: then it expires by itself. Answers what is to
    /// be said of that.
    pub(super) async fn give_back(
        &mut self,
        leadership: Leadership,
        span: Option<&TermSpan>,
    ) -> Option<NotGivenBack> {
        let (name, token) = (leadership.name().clone(), leadership.token());
        let timing = self.election.timing();
        let patience = timing.request_timeout() * LEAVING_REQUESTS;
        let began = Instant::now();
        let departure = self.signals.wait_at_the_end(patience, leadership.step_down());
        let told = match departure.await {
            Some(ReleaseOutcome::Unconfirmed(error)) => Some(error),
            None => None,
            Some(_) => return None,
        };
        let mut kept = NotGivenBack {
            name,
            token,
            error: None,
            waited: began.elapsed(),
            remaining: timing.ttl().duration(),
        };
        while let Some(event) = self.told() {
            if let Some(span) = span {
                span.note(&event);
            }
            kept.take_in(event);
        }
        kept.error = told.or(kept.error);
        Some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_back_is_told_to_expire_only_where_it_does() {
        let text_of = |fault| {
            let kept = NotGivenBack {
                name: LeaseName::new("job").unwrap(),
                token: FencingToken::new(7).unwrap(),
                error: Some(StoreError::not_applied(fault, "no")),
                waited: Duration::ZERO,
                remaining: Duration::from_secs(6),
            };
            kept.text()
        };
        let refused = text_of(Fault::Forbidden);
        assert!(refused.contains("expires by itself within 6s"), "{refused}");
        let damaged = text_of(Fault::Unreadable);
        assert!(
            !damaged.contains("expires") && damaged.contains("until the record is mended"),
            "{damaged}"
        );
    }
}
