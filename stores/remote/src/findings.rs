//! What an examination finds, in few words.

use tenure_core::{Finding, StoreError, Verdict};

/// As it should be.
#[must_use]
pub fn good(subject: &str, detail: impl Into<String>) -> Finding {
    finding(subject, Verdict::Good, detail, None)
}

/// It works, but not for ever; `repair` says what to do.
#[must_use]
pub fn warning(subject: &str, detail: impl Into<String>, repair: impl Into<String>) -> Finding {
    finding(subject, Verdict::Warning, detail, Some(repair.into()))
}

/// It does not work; `repair` says what to do.
#[must_use]
pub fn bad(subject: &str, detail: impl Into<String>, repair: impl Into<String>) -> Finding {
    finding(subject, Verdict::Bad, detail, Some(repair.into()))
}

/// A check that could not be made is a finding too.
#[must_use]
pub fn unknown(subject: &str, error: &StoreError) -> Finding {
    finding(
        subject,
        Verdict::Warning,
        format!("could not be examined: {error}"),
        None,
    )
}

fn finding(subject: &str, verdict: Verdict, detail: impl Into<String>, repair: Option<String>) -> Finding {
    Finding {
        subject: subject.to_owned(),
        verdict,
        detail: detail.into(),
        repair,
    }
}
