//! What the driver's errors mean to the contract: fault, certainty, one line for a person.

use redis::{ErrorKind, RedisError};
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::TlsWords;
pub(crate) use tenure_remote::{Deed, line};

/// Translates `error`. `subject` is what it happened to, as `lease "x"`; `place` is the store's location.
pub(crate) fn store_error(error: &RedisError, deed: Deed, subject: &str, place: &str) -> StoreError {
    let (fault, certainty, why) = judge(error);
    deed.error(fault, certainty, subject, place, why)
}

/// Nobody answered within the time allowed.
pub(crate) fn timed_out(deed: Deed, subject: &str, place: &str, allowed: Duration) -> StoreError {
    let check = "the network and whether the server is frozen";
    tenure_remote::timed_out(deed, subject, place, allowed, check)
}

/// The server's word for what is wrong, as `READONLY`. Older servers put it into the text of a script's
/// error.
pub(crate) fn code(error: &RedisError) -> Option<&str> {
    let code = error.code()?;
    let text = error.detail().unwrap_or_default();
    let within = || {
        KNOWN
            .iter()
            .copied()
            .find(|known| text.contains(&format!("-{known} ")))
    };
    match code {
        "ERR" => within().or(Some(code)),
        _ => Some(code),
    }
}

/// Whether the server no longer rules what it was asked about, or the connection is of no use any more: the
/// next request begins with looking for the server. One that asks to ask another (ASK) has the slot still,
/// until it is moved.
pub(crate) fn ends_connection(error: &RedisError) -> bool {
    match code(error) {
        Some("ERR") => MOVING.iter().any(|refusal| words(error).contains(refusal)),
        Some(code) => {
            matches!(
                code,
                "READONLY" | "MOVED" | "CLUSTERDOWN" | "MASTERDOWN" | "LOADING" | "NOAUTH" | OTHER_QUORUM
            )
        }
        None => true,
    }
}

/// Whether what is told of this error holds one of these.
pub(crate) fn repeats<'a>(error: &RedisError, mut secrets: impl Iterator<Item = &'a str>) -> bool {
    // In full: of a secret where a line ends, a part would be told. The operating system's own words hold
    // none.
    let words = words(error);
    let of_system = matches!(error.kind(), ErrorKind::Io);
    !of_system && secrets.any(|secret| words.contains(secret) || one_line(words).contains(&one_line(secret)))
}

/// What the server says, without the arguments that it could not read: HELLO's are user and password.
fn words(error: &RedisError) -> &str {
    let words = error.detail().unwrap_or_else(|| error.category());
    let told = words.split(ARGUMENTS).next().unwrap_or_default();
    told.trim_end().trim_end_matches(',')
}

/// What stands before the arguments of a command that a server does not know.
const ARGUMENTS: &str = "with args beginning with";

fn one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn judge(error: &RedisError) -> (Fault, Certainty, String) {
    use Certainty::{NotApplied, Unknown};
    let told = || line(words(error));
    if let Some(code) = code(error) {
        return by_code(code, &told());
    }
    match error.kind() {
        ErrorKind::AuthenticationFailed => (
            Fault::Unauthenticated,
            NotApplied,
            format!("{}; check user and password", told()),
        ),
        ErrorKind::InvalidClientConfig | ErrorKind::Client => (Fault::Invalid, NotApplied, told()),
        ErrorKind::Io if error.is_timeout() => (Fault::TimedOut, Unknown, told()),
        ErrorKind::Io => (Fault::Unreachable, Unknown, TLS.connection_failed(error)),
        // Not in the driver's words, which quote what was received.
        ErrorKind::Parse => (
            Fault::Unreachable,
            Unknown,
            "the other side does not speak Redis' protocol; check host and port".to_owned(),
        ),
        _ => (Fault::Internal, Unknown, told()),
    }
}

const TLS: TlsWords = TlsWords {
    plain: "redis:",
    roots: "ca=",
    own: "renew it, or name one by cert= and key=",
};

/// What a script is answered with whose user lacks the right to one of its commands, keys or channels: by
/// Redis before 7.2, and by later ones and Valkey.
const MAY_NOT: [&str; 2] = ["The user executing the script can't ", "ACL failure in script"];

/// What a script of a cluster is answered with whose key has left, or may not be used: the first words
/// differ.
const MOVING: [&str; 2] = ["access a non local key in a cluster", "while the cluster is down"];

/// What a member of a quorum answers to who has met it as another: see `lua/quorum_member.lua`.
const OTHER_QUORUM: &str = "OTHERQUORUM";

/// By the server's word. All refuse a script before its first write, but for the last, and for a right that
/// its user lacks.
fn by_code(code: &str, told: &str) -> (Fault, Certainty, String) {
    use Certainty::{NotApplied, Unknown};
    match code {
        OTHER_QUORUM => (
            Fault::Invalid,
            NotApplied,
            format!("{told}; start this process again, with the URL that is meant by now"),
        ),
        "NOAUTH" | "WRONGPASS" => (
            Fault::Unauthenticated,
            NotApplied,
            format!("{told} ({code}); check user and password"),
        ),
        "DENIED" => (
            Fault::Unauthenticated,
            NotApplied,
            format!("{told} ({code}); have the server ask for a password, and name it in the URL"),
        ),
        "NOPERM" => (
            Fault::Forbidden,
            NotApplied,
            format!("{told} ({code}); grant the rights in the README of tenure-redis with ACL SETUSER"),
        ),
        // A command within a script: what the script has written before it stands.
        "ERR" if MAY_NOT.iter().any(|refusal| told.contains(refusal)) => (
            Fault::Forbidden,
            Unknown,
            format!("{told}; grant the rights in the README of tenure-redis with ACL SETUSER"),
        ),
        // The same: a key whose slot moves is asked for first, and another one may not be.
        "ERR" if MOVING.iter().any(|refusal| told.contains(refusal)) => (
            Fault::Unreachable,
            Unknown,
            format!("{told}; the cluster is moving the slot or is down; ask again"),
        ),
        "READONLY" => (
            Fault::Unreachable,
            NotApplied,
            "the server is a replica now (READONLY); a fail-over may be under way".to_owned(),
        ),
        "MOVED" | "ASK" | "TRYAGAIN" => (
            Fault::Unreachable,
            NotApplied,
            format!("the cluster is moving the slot ({code}); ask again"),
        ),
        "CLUSTERDOWN" | "MASTERDOWN" => (Fault::Unreachable, NotApplied, format!("{told} ({code})")),
        "LOADING" => (
            Fault::Unreachable,
            NotApplied,
            "the server is loading its data (LOADING); ask again".to_owned(),
        ),
        "BUSY" => (
            Fault::Busy,
            NotApplied,
            "a script occupies the server (BUSY); find it, or end it with SCRIPT KILL".to_owned(),
        ),
        "NOREPLICAS" => (
            Fault::Busy,
            NotApplied,
            "too few replicas are connected (NOREPLICAS); bring them up, or lower min-replicas-to-write"
                .to_owned(),
        ),
        "OOM" => (
            Fault::Full,
            NotApplied,
            "the server is at its maxmemory (OOM); free memory, or raise it".to_owned(),
        ),
        "MISCONF" => (
            Fault::Full,
            NotApplied,
            "the server cannot write its data to disk, so it takes no writes (MISCONF); see its log"
                .to_owned(),
        ),
        // What the script has written before it came to that key stands.
        "WRONGTYPE" => (
            Fault::Unreadable,
            Unknown,
            "a key of the prefix is another program's (WRONGTYPE): {PREFIX}:leases, :leases:store, :leases:removed, :fences or :quorum, \
             or of a lease or a mark; rename it, or name another prefix="
                .to_owned(),
        ),
        _ => (Fault::Internal, Unknown, format!("{told} ({code})")),
    }
}

/// What a script's error may hold in its text.
const KNOWN: [&str; 11] = [
    "READONLY",
    "MOVED",
    "ASK",
    "CLUSTERDOWN",
    "MASTERDOWN",
    "LOADING",
    "NOREPLICAS",
    "OOM",
    "MISCONF",
    "NOPERM",
    "WRONGTYPE",
];
