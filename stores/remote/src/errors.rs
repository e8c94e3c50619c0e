//! Errors as the contract wants them: fault, certainty, one line for a person.

use std::fmt::Display;
use std::time::Duration;
use tenure_core::{Certainty, Fault, LeaseName, StoreError};

/// Longest piece of a foreign message that is passed on, in characters.
const LINE_CHARACTERS_MAX: usize = 200;

/// What was being done when it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Something that changes nothing: its failure is never uncertain.
    Read,
    /// Something that may have been applied although it failed.
    Write,
}

impl Deed {
    /// The error of this deed on `subject` (as `lease "x"`) at `place` (the store's location). `certainty` is what holds
    /// for a write.
    #[must_use]
    pub fn error(
        self,
        fault: Fault,
        certainty: Certainty,
        subject: &str,
        place: &str,
        why: impl Display,
    ) -> StoreError {
        StoreError {
            fault,
            certainty: match self {
                Deed::Read => Certainty::NotApplied,
                Deed::Write => certainty,
            },
            message: format!("{subject} at {place}: {why}"),
        }
    }
}

/// A failure after an earlier step of the same request was applied: whatever it says of itself, nobody knows what holds.
#[must_use]
pub fn after_a_step(error: StoreError) -> StoreError {
    StoreError {
        certainty: Certainty::Unknown,
        ..error
    }
}

/// Nobody answered within the time allowed. `check` says what to look at.
#[must_use]
pub fn timed_out(deed: Deed, subject: &str, place: &str, allowed: Duration, check: &str) -> StoreError {
    let why = format!("no answer within {allowed:?}; check {check}");
    deed.error(Fault::TimedOut, Certainty::Unknown, subject, place, why)
}

/// Why a connection failed, in a foreign error's words, and the way out where they do not lead there. `plain` is the option by
/// which nothing is encrypted.
#[must_use]
pub fn connection_failed(error: impl Display, plain: &str) -> String {
    let why = line(error);
    // The library's, which reads no certificate of the first version, also where nobody asks whose it is.
    let way_out = match why.contains("UnsupportedCertVersion") {
        true => format!(
            "; the server's certificate is of version 1 of X.509: make one of version 3 (with a subjectAltName), or say {plain}"
        ),
        false => String::new(),
    };
    format!("the connection failed: {why}{way_out}")
}

/// A foreign text as one line of bounded length.
#[must_use]
pub fn line(text: impl Display) -> String {
    let text = text.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(LINE_CHARACTERS_MAX).collect()
}

/// What an error about this lease is about.
#[must_use]
pub fn lease_subject(name: &LeaseName) -> String {
    format!("lease \"{name}\"")
}
