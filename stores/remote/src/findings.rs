//! What an examination finds, in few words.

use std::net::IpAddr;
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

/// That nobody at these hosts has to prove who he is, where the way to one leaves this machine; `repair` says
/// how he has to.
#[must_use]
pub fn unproven<'a>(hosts: impl IntoIterator<Item = &'a str>, repair: &str) -> Option<Finding> {
    let far: Vec<&str> = hosts.into_iter().filter(|host| !is_here(host)).collect();
    let told = || {
        format!(
            "whoever answers at {} has to prove nothing: who stands between may be given the password, and answer in the \
             server's place",
            far.join(", ")
        )
    };
    (!far.is_empty()).then(|| warning("encryption", told(), repair))
}

/// By what a URL says of it: a name may lead anywhere.
fn is_here(host: &str) -> bool {
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn finding(subject: &str, verdict: Verdict, detail: impl Into<String>, repair: Option<String>) -> Finding {
    Finding {
        subject: subject.to_owned(),
        verdict,
        detail: detail.into(),
        repair,
    }
}

#[cfg(test)]
mod tests {
    use super::unproven;

    #[test]
    fn way_that_leaves_the_machine_to_a_host_that_proves_nothing_is_told_of() {
        for here in ["localhost", "127.0.0.1", "127.0.0.9", "::1", "[::1]"] {
            assert_eq!(unproven([here], "verify"), None, "{here}");
        }
        for far in ["db1", "10.0.0.7", "fe80::1", "127.0.0.1.example"] {
            let told = unproven(["localhost", far], "verify").map(|finding| (finding.detail, finding.repair));
            let (detail, repair) = told.unwrap_or_default();
            assert!(detail.contains(&format!("at {far} has")), "{detail}");
            assert_eq!(repair.as_deref(), Some("verify"));
        }
    }
}
