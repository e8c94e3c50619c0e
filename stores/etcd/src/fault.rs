//! What a member's errors mean to the contract: fault, certainty, one line for a person.

use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, line};
use tonic::{Code, Status};

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A member, or the way to it.
    Status(Status),
    /// Nobody could be reached, so nothing was sent.
    Undialled(String),
    /// No answer in time.
    Late,
}

impl Failure {
    /// Whether the connection is of no use any more, or its member of none: the next call goes to another.
    pub(crate) fn ends_connection(&self) -> bool {
        match self {
            Self::Status(status) => {
                matches!(
                    status.code(),
                    Code::Unavailable | Code::Cancelled | Code::Unknown | Code::DeadlineExceeded
                ) || self.is_token()
            }
            Self::Undialled(_) => false,
            Self::Late => true,
        }
    }

    /// Whether the session that a key was to end with is gone: nothing was applied.
    pub(crate) fn is_session_gone(&self) -> bool {
        matches!(self, Self::Status(status)
            if status.code() == Code::NotFound && status.message().contains("requested lease not found"))
    }

    /// Whether the token of the credentials is of no use any more, by its age or a change of rights: nothing was applied.
    pub(crate) fn is_token(&self) -> bool {
        let stale = |text: &str| {
            text.contains("invalid auth token") || text.contains("revision of auth store is old")
        };
        matches!(self, Self::Status(status) if stale(status.message()))
    }

    /// Translates. `subject` is what it happened to, as `lease "x"`; `place` is the store's location.
    pub(crate) fn error(&self, deed: Deed, subject: &str, place: &str) -> StoreError {
        let (fault, certainty, why) = match self {
            Self::Status(status) => judge(status),
            Self::Undialled(why) => (Fault::Unreachable, Certainty::NotApplied, why.clone()),
            Self::Late => (
                Fault::TimedOut,
                Certainty::Unknown,
                "no answer in time; check the network, and whether the member is frozen".to_owned(),
            ),
        };
        deed.error(fault, certainty, subject, place, why)
    }
}

fn judge(status: &Status) -> (Fault, Certainty, String) {
    use Certainty::{NotApplied, Unknown};
    let told = line(status.message());
    let says = |text: &str| status.message().contains(text);
    match status.code() {
        Code::ResourceExhausted if says("database space exceeded") => (
            Fault::Full,
            NotApplied,
            "the server is out of space (NOSPACE): whoever holds a lease keeps it, but nobody can take one; compact, \
             defragment, then run etcdctl alarm disarm"
                .to_owned(),
        ),
        Code::ResourceExhausted => (Fault::Busy, NotApplied, format!("{told}; ask again")),
        Code::PermissionDenied => (
            Fault::Forbidden,
            NotApplied,
            format!("{told}; grant the role readwrite on the prefix, see the README"),
        ),
        Code::Unauthenticated => (
            Fault::Unauthenticated,
            NotApplied,
            format!("{told}; check user and password"),
        ),
        Code::InvalidArgument if says("authentication failed") || says("user name is empty") => (
            Fault::Unauthenticated,
            NotApplied,
            format!("{told}; check user and password in the URL"),
        ),
        Code::FailedPrecondition if says("authentication is not enabled") => (
            Fault::Unauthenticated,
            NotApplied,
            format!("{told}; leave user and password out of the URL"),
        ),
        Code::Unavailable if says("no leader") => (
            Fault::Unreachable,
            NotApplied,
            "the member has no leader: it is cut off, or an election is under way".to_owned(),
        ),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            (Fault::Unreachable, Unknown, format!("{told}{}", cause(status)))
        }
        Code::Unimplemented => (
            Fault::Unsupported,
            NotApplied,
            format!("{told}; etcd 3.4 or later is needed"),
        ),
        // Out of range is, too, an answer that is too long to be taken: what it answers was applied.
        Code::OutOfRange => (Fault::Internal, Unknown, told),
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition => (Fault::Internal, NotApplied, told),
        code => (Fault::Internal, Unknown, format!("{told} ({code:?})")),
    }
}

/// What the transport says, which its own message hides.
fn cause(status: &Status) -> String {
    let mut source = std::error::Error::source(status);
    let mut last = None;
    for _depth in 0..CAUSES_MAX {
        let Some(error) = source else { break };
        last = Some(error.to_string());
        source = error.source();
    }
    last.map_or_else(String::new, |last| format!(": {}", line(last)))
}

/// How deep the causes of an error are followed.
const CAUSES_MAX: usize = 8;

// No server can be made to answer a transaction and then so, in that very moment.
#[cfg(test)]
mod tests {
    use super::Failure;
    use tenure_core::Certainty::{NotApplied, Unknown};
    use tenure_remote::{Deed, after_a_step};
    use tonic::Status;

    fn failed(failure: &Failure) -> tenure_core::StoreError {
        failure.error(Deed::Write, "lease \"job\"", "here")
    }

    #[test]
    fn answer_above_the_limit_leaves_a_write_unknown() {
        let too_long =
            "Error, decoded message length too large: found 67108865 bytes, the limit is: 67108864 bytes";
        let error = failed(&Failure::Status(Status::out_of_range(too_long)));
        assert_eq!(error.certainty, Unknown, "{error}");
    }

    #[test]
    fn failure_after_an_applied_transaction_is_unknown_whatever_it_says() {
        for failure in [
            Failure::Undialled("nobody can be reached".to_owned()),
            Failure::Status(Status::unavailable("etcdserver: no leader")),
            Failure::Status(Status::resource_exhausted("etcdserver: too many requests")),
            Failure::Status(Status::unauthenticated("etcdserver: invalid auth token")),
        ] {
            let before = failed(&failure);
            assert_eq!(before.certainty, NotApplied, "{before}");
            let after = after_a_step(before.clone());
            assert_eq!((after.certainty, after.fault), (Unknown, before.fault), "{after}");
            assert_eq!(after.message, before.message);
        }
    }
}
