//! Errors as the contract wants them: fault, certainty, one line for a person.

use std::fmt::Display;
use std::time::Duration;
use tenure_core::{Certainty, Fault, LeaseName, ResourceName, StoreError};

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
    /// The error of this deed on `subject` (as `lease "x"`) at `place` (the store's location). `certainty` is
    /// what holds for a write. An empty subject is to be put before it by who knows it.
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
            message: format!("{subject} at {place}: {why}").trim_start().to_owned(),
        }
    }
}

/// A failure after an earlier step of the same request was applied: whatever it says of itself, nobody knows
/// what holds.
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

/// What it comes to that none of several places lets in, with what each says. A mistake that only a person
/// can mend is one only where each of them says so: where one was forgotten when a password was changed, the
/// others may be away for a moment, and that must end nobody's campaign. That one is another store says more
/// than that others are away.
#[must_use]
pub fn none_lets_in(failed: Vec<StoreError>) -> StoreError {
    let stranger = failed.iter().find(|error| error.fault == Fault::AnotherStore);
    let passing = failed.iter().rfind(|error| !error.fault.is_misconfiguration());
    let refused = failed.iter().rfind(|error| !error.fault.is_final());
    let fault = stranger
        .or(passing)
        .or(refused)
        .or(failed.last())
        .map_or(Fault::Invalid, |error| error.fault);
    let mut told: Vec<String> = failed.into_iter().map(|error| error.message).collect();
    // Of a file that cannot be read all say the same.
    told.dedup();
    StoreError::not_applied(fault, told.join("; "))
}

/// The options of a store's URL that decide whom an encrypted connection trusts.
#[derive(Clone, Copy, Debug)]
pub struct TlsWords {
    /// By which nothing is encrypted.
    pub plain: &'static str,
    /// By which a file of roots is named.
    pub roots: &'static str,
    /// What to do where the server wants a certificate of ours, or another one.
    pub own: &'static str,
}

/// What a server says of a certificate of ours, or of none, in the words of the library.
const REFUSED_OURS: [&str; 8] = [
    "CertificateExpired",
    "CertificateRequired",
    "CertificateRevoked",
    "CertificateUnknown",
    "BadCertificate",
    "UnsupportedCertificate",
    "UnknownCA",
    "AccessDenied",
];

impl TlsWords {
    /// What to do about a server that is not there, or its certificate, which a foreign error is about: to be
    /// put behind its words, which do not lead there.
    #[must_use]
    pub fn way_out(self, error: impl Display) -> String {
        let why = error.to_string();
        let Self { plain, roots, own } = self;
        let says = |words: &[&str]| words.iter().any(|word| why.contains(word));
        // An alert is the other side's verdict: what it says of a certificate, it says of ours.
        if says(&["received fatal alert"]) && says(&REFUSED_OURS) {
            format!("; the server does not take our certificate, or wants one: {own}")
        } else if says(&["InvalidContentType"]) {
            format!(
                "; the other side does not speak TLS: name the port where it does, or say {plain} where that is meant"
            )
        // A server that takes the handshake for a request of its own closes, or is away just then.
        } else if says(&["handshake eof"]) {
            format!("; if it does not speak TLS at this port, name the one where it does, or say {plain}")
        } else if says(&["CaUsedAsEndEntity"]) {
            format!(
                "; the server's certificate is one that signs others (CA:TRUE): make it one of its own (CA:FALSE), signed by that \
                 one, which {roots} names"
            )
        // In the words of the library, which reads no certificate of the first version, also where nobody
        // asks whose it is.
        } else if says(&["UnsupportedCertVersion"]) {
            format!(
                "; the server's certificate is of version 1 of X.509: make one of version 3 (with a subjectAltName), or say {plain}"
            )
        } else if says(&["UnknownIssuer"]) {
            format!("; name a PEM file of the roots that have signed the server's certificate by {roots}")
        } else if says(&["NotValidForName", "not valid for name"]) {
            "; name the host in the URL as its certificate does, or make one for this name".to_owned()
        } else if says(&["Expired", "certificate expired"]) {
            "; renew the server's certificate".to_owned()
        } else if says(&["Connection refused"]) {
            "; is the server running, and is the port its own?".to_owned()
        } else {
            String::new()
        }
    }

    /// Why a connection failed, in a foreign error's words, and the way out.
    #[must_use]
    pub fn connection_failed(self, error: impl Display) -> String {
        let error = error.to_string();
        format!("the connection failed: {}{}", line(&error), self.way_out(&error))
    }
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

/// What an error about this resource is about.
#[must_use]
pub fn fence_subject(resource: &ResourceName) -> String {
    format!("fence \"{resource}\"")
}

#[cfg(test)]
mod tests {
    use super::TlsWords;

    /// The words are the library's, for which no error can be made but by its connections.
    #[test]
    fn certificate_is_to_be_renewed_by_whose_it_is() {
        let words = TlsWords {
            plain: "plain",
            roots: "roots",
            own: "renew ours",
        };
        for (error, way_out) in [
            (
                "invalid peer certificate: Expired",
                "; renew the server's certificate",
            ),
            (
                "invalid peer certificate: certificate expired: verified at time 2",
                "; renew the server's certificate",
            ),
            ("received fatal alert: CertificateExpired", ": renew ours"),
            ("received fatal alert: CertificateRequired", ": renew ours"),
            ("received fatal alert: UnknownCA", ": renew ours"),
            ("received fatal alert: ProtocolVersion", ""),
            ("invalid peer certificate: UnknownIssuer", "by roots"),
            ("tls handshake eof", "or say plain"),
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "which roots names",
            ),
            (
                "received corrupt message of type InvalidContentType",
                "say plain where that is meant",
            ),
        ] {
            let told = words.way_out(error);
            assert!(
                told.ends_with(way_out) && told.is_empty() == way_out.is_empty(),
                "{error}: {told}"
            );
        }
    }
}
