//! What NATS's answers mean to the contract: fault, certainty, one line for a person.

use serde_json::Value;
use tenure_core::{Certainty, Fault};
use tenure_remote::line;

/// An error that JetStream answered with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    /// JetStream's number of it.
    pub(crate) number: u64,
    /// The class, as in HTTP.
    class: u64,
    description: String,
}

impl Refusal {
    /// The error of an answer, if it is one.
    pub(crate) fn of(answer: &Value) -> Option<Self> {
        let error = answer.get("error")?;
        let number = |field: &str| error.get(field).and_then(Value::as_u64).unwrap_or(0);
        Some(Self {
            number: number("err_code"),
            class: number("code"),
            description: line(
                error
                    .get("description")
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
            ),
        })
    }

    /// Whether the subject has another last message than the one that the write was conditional on.
    pub(crate) fn is_conflict(&self) -> bool {
        self.number == WRONG_LAST_SEQUENCE
    }

    /// Whether another message is just being stored that the condition is about, so that it was not looked
    /// at: nothing was stored, and nobody knows yet whether the condition holds.
    pub(crate) fn is_in_process(&self) -> bool {
        self.number == IN_PROCESS
    }

    /// Whether a server says so that is cut off from the others, or while none leads them.
    pub(crate) fn is_of_a_server_alone(&self) -> bool {
        self.class == UNAVAILABLE && self.judge().0 == Fault::Unreachable
    }

    /// What it means. JetStream refuses before it stores, but for faults of its own.
    pub(crate) fn judge(&self) -> (Fault, Certainty, String) {
        use Certainty::{NotApplied, Unknown};
        let told = format!("{} ({})", self.description, self.number);
        let is_full =
            self.description.contains("maximum bytes") || self.description.contains("maximum messages");
        if let Some((fault, way_out)) = self.limit() {
            return (fault, NotApplied, format!("{told}; {way_out}"));
        }
        match self.number {
            STORE_FAILED if is_full => (
                Fault::Full,
                NotApplied,
                format!(
                    "{told}; the bucket is at its limit: raise it with `nats stream edit`, or free space"
                ),
            ),
            STORE_FAILED if self.description.contains("no space left") => (
                Fault::Full,
                Unknown,
                format!("{told}; the server's disk is full: free space"),
            ),
            // Servers before 2.12 say so also when they come to store what a majority has agreed on: another
            // one of them leads then, and has it.
            SERVER_LIMIT => (Fault::Full, Unknown, format!("{told}; {RAISE_LIMITS}")),
            SEALED => (
                Fault::ReadOnly,
                NotApplied,
                format!("{told}; use a bucket that is not sealed"),
            ),
            WRONG_STREAM => (
                Fault::Unsupported,
                NotApplied,
                format!("{told}; another stream takes this bucket's subjects: name another bucket"),
            ),
            STREAM_NOT_FOUND => (
                Fault::Unreachable,
                NotApplied,
                format!(
                    "{told}; the bucket is gone, or its cluster is starting: start every process anew that was connected if it was \
                     removed (as one in memory is whenever its server is started again)"
                ),
            ),
            NO_PEERS if self.description.contains("offline") => (
                Fault::Unreachable,
                NotApplied,
                format!("{told}; servers of the cluster are starting, or gone"),
            ),
            NO_PEERS => (
                Fault::Unsupported,
                NotApplied,
                format!("{told}; the cluster has no room for so many copies: choose fewer with replicas="),
            ),
            IN_PROCESS => (
                Fault::Busy,
                NotApplied,
                format!("{told}; another write is under way, and does not end: try again"),
            ),
            _ if self.class == TOO_MANY => (Fault::Busy, NotApplied, told),
            _ if self.class == UNAVAILABLE => (
                Fault::Unreachable,
                Unknown,
                format!("{told}; a majority of the bucket's servers may be missing"),
            ),
            _ => (Fault::Internal, Unknown, told),
        }
    }

    /// Which limit, of the account, of the server or of the bucket, it is of, and what is to be done about
    /// it.
    fn limit(&self) -> Option<(Fault, &'static str)> {
        Some(match self.number {
            ACCOUNT_LIMIT | MEMORY_LIMIT | STORAGE_LIMIT => (Fault::Full, RAISE_LIMITS),
            TOO_LARGE => (
                Fault::Unsupported,
                "raise the bucket's largest value: nats stream edit KV_BUCKET --max-msg-size=…",
            ),
            NOT_ENABLED_FOR_ACCOUNT => (
                Fault::Unsupported,
                "enable JetStream for this account, or use one that has it",
            ),
            NOT_CLUSTERED => (
                Fault::Unsupported,
                "this server is of no cluster and keeps one copy: replicas=1",
            ),
            MAX_BYTES_REQUIRED => (
                Fault::Unsupported,
                "make the bucket yourself, with --max-bytes=…: the README of tenure-nats says how",
            ),
            STREAMS_LIMIT => (
                Fault::Unsupported,
                "remove a stream that nobody needs, or raise the limit of the account",
            ),
            CONSUMERS_LIMIT => (
                Fault::Full,
                "each watch is a consumer of the bucket: raise its max_consumers and that of the account, or make the bucket anew \
                 without",
            ),
            // Not `Unsupported`: whoever is told so by a watch takes it that there are none.
            INACTIVE_TOO_LONG => (
                Fault::Invalid,
                "let consumers of the bucket be inactive for 4s: its consumer_limits, or the account's",
            ),
            _ => return None,
        })
    }
}

/// What to do about a limit of JetStream's room.
const RAISE_LIMITS: &str = "raise the limits of the account or of the server, or free space";

/// More than one copy was asked for, and the server is of no cluster.
pub(crate) const NOT_CLUSTERED: u64 = 10_074;
/// No message has this subject, or this number.
pub(crate) const NO_MESSAGE: u64 = 10_037;
/// There is no such stream.
pub(crate) const STREAM_NOT_FOUND: u64 = 10_059;
/// There is one of this name, with another configuration.
pub(crate) const STREAM_EXISTS: u64 = 10_058;

const WRONG_LAST_SEQUENCE: u64 = 10_071;
const IN_PROCESS: u64 = 10_164;
const STORE_FAILED: u64 = 10_077;
const ACCOUNT_LIMIT: u64 = 10_002;
const SERVER_LIMIT: u64 = 10_023;
const MEMORY_LIMIT: u64 = 10_028;
const STORAGE_LIMIT: u64 = 10_047;
const TOO_LARGE: u64 = 10_054;
const NOT_ENABLED_FOR_ACCOUNT: u64 = 10_039;
const SEALED: u64 = 10_109;
const WRONG_STREAM: u64 = 10_060;
const NO_PEERS: u64 = 10_005;
const MAX_BYTES_REQUIRED: u64 = 10_113;
const STREAMS_LIMIT: u64 = 10_027;
const CONSUMERS_LIMIT: u64 = 10_026;
const INACTIVE_TOO_LONG: u64 = 10_153;
const TOO_MANY: u64 = 429;
const UNAVAILABLE: u64 = 503;

#[cfg(test)]
mod tests {
    use super::{Refusal, SERVER_LIMIT};
    use serde_json::json;
    use tenure_core::{Certainty, Fault};

    /// To have a server of a cluster before 2.12 say so at the very moment at which it stores what is agreed
    /// on would take a disk that fills at that moment.
    #[test]
    fn write_that_a_server_without_room_refuses_may_be_stored_by_the_others() {
        let answer = json!({ "error": { "code": 503, "err_code": SERVER_LIMIT, "description": "insufficient resources" } });
        let (fault, certainty, told) = Refusal::of(&answer).expect("an error").judge();
        assert_eq!((fault, certainty), (Fault::Full, Certainty::Unknown), "{told}");
    }
}
