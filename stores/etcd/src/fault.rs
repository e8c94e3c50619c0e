//! What a member's errors mean to the contract: fault, certainty, one line for a person.

use crate::once::HasEnded;
use crate::one_cluster::OfAnother;
use std::error::Error;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, line};
use tonic::{Code, Status};

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// A member, or the way to it.
    Status(Status),
    /// A watch was denied to a user with a token: it may have run out, which servers before 3.5.6 do not tell
    /// from a lack of rights.
    Denied(Status),
    /// Nobody could be connected to, so nothing was sent. What it says names no lease.
    Undialled(StoreError),
    /// The member is of another cluster than the one that was connected to first, so nothing was asked of it.
    /// It may pass, and whoever was fine until then waits for that.
    Stranger(String),
    /// The member has ended a stream as it lost its leader: what was asked on it may have been applied
    /// before.
    LeaderLost,
    /// No answer in time.
    Late,
}

impl Failure {
    /// That a member could not be connected to.
    pub(crate) fn undialled(why: String) -> Self {
        Self::Undialled(StoreError::not_applied(Fault::Unreachable, why))
    }

    /// What a member says of a request on a stream. Of one alone that there is no leader is said before it is
    /// looked at.
    pub(crate) fn of_stream(status: Status) -> Self {
        match has_no_leader(&status) {
            true => Self::LeaderLost,
            false => Self::Status(status),
        }
    }

    /// The same as the error of connecting: of no request was anything sent.
    pub(crate) fn of_dial(self) -> StoreError {
        let (fault, _certainty, why) = self.judge();
        StoreError::not_applied(fault, why)
    }

    /// Whether the connection is of no use any more, or its member of none: the next call goes to another.
    pub(crate) fn ends_connection(&self) -> bool {
        match self {
            Self::Status(status) => {
                is_unfit(status)
                    || is_no_etcds(status)
                    || matches!(
                        status.code(),
                        Code::Unavailable | Code::Cancelled | Code::Unknown | Code::DeadlineExceeded
                    )
            }
            Self::Denied(_) | Self::Undialled(_) | Self::Stranger(_) => false,
            Self::LeaderLost | Self::Late => true,
        }
    }

    /// Whether the session that a key was to end with is gone: nothing was applied.
    pub(crate) fn is_session_gone(&self) -> bool {
        matches!(self, Self::Status(status)
            if status.code() == Code::NotFound && status.message().contains("requested lease not found"))
    }

    /// Whether the server has no space.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Status(status) if has_no_space(status))
    }

    /// Whether the data of the members differ, so that the server does nothing.
    pub(crate) fn is_corrupt(&self) -> bool {
        matches!(self, Self::Status(status) if has_differing_data(status))
    }

    /// Whether the token of the credentials is, or may be, of no use any more, by its age or a change of
    /// rights: nothing was applied.
    pub(crate) fn is_token(&self) -> bool {
        let stale = |text: &str| {
            text.contains("invalid auth token") || text.contains("revision of auth store is old")
        };
        match self {
            Self::Status(status) => stale(status.message()),
            Self::Denied(_) => true,
            Self::Undialled(_) | Self::Stranger(_) | Self::LeaderLost | Self::Late => false,
        }
    }

    /// Whether the way to the member has failed, and no member has answered.
    pub(crate) fn is_of_the_way(&self) -> bool {
        matches!(self, Self::Status(status) if status.source().is_some())
    }

    /// Whether nothing of the call was sent, as its connection had ended before.
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self, Self::Status(status) if causes(status).any(|cause| cause.is::<HasEnded>()))
    }

    /// What a member said, or why it said nothing.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Status(status) | Self::Denied(status) => line(status.message()),
            Self::Undialled(error) => error.message.clone(),
            Self::Stranger(why) => why.clone(),
            Self::LeaderLost | Self::Late => "no answer in time".to_owned(),
        }
    }

    /// Translates. `subject` is what it happened to, as `lease "x"`; `place` is the store's location.
    pub(crate) fn error(&self, deed: Deed, subject: &str, place: &str) -> StoreError {
        let (fault, certainty, why) = self.judge();
        deed.error(fault, certainty, subject, place, why)
    }

    fn judge(&self) -> (Fault, Certainty, String) {
        match self {
            Self::Status(status) | Self::Denied(status) => judge(status),
            Self::Undialled(error) => (error.fault, Certainty::NotApplied, error.message.clone()),
            Self::Stranger(why) => (Fault::AnotherStore, Certainty::NotApplied, why.clone()),
            Self::LeaderLost => (Fault::Unreachable, Certainty::Unknown, NO_LEADER.to_owned()),
            Self::Late => (
                Fault::TimedOut,
                Certainty::Unknown,
                "no answer in time; check the network, and whether the member is frozen".to_owned(),
            ),
        }
    }
}

/// What is said where a member has no leader.
const NO_LEADER: &str = "the member has no leader: it is cut off, or an election is under way";

/// What is said of transactions that the server will never take.
const TOO_MUCH: [&str; 3] = ["request is too large", "too many operations", "duplicate key"];

fn has_no_leader(status: &Status) -> bool {
    status.code() == Code::Unavailable && status.message().contains("no leader")
}

/// Whether the member does nothing for anybody yet, as it has no vote or does not know what the cluster can
/// do. It says so before it looks at a request, and from 3.6 on as if that were the request's fault.
fn is_unfit(status: &Status) -> bool {
    let said = ["not supported for learner", "not capable"];
    matches!(status.code(), Code::Unavailable | Code::FailedPrecondition)
        && said.iter().any(|said| status.message().contains(said))
}

/// Whether it is what stands before the member that has answered, as a proxy does that reads its routes anew:
/// there is no status of the protocol's, for which the transport takes the one of HTTP, or one that etcd
/// gives with a reason alone. Nobody was told of a right that is lacking, or of what a server cannot do.
fn is_no_etcds(status: &Status) -> bool {
    status.message().starts_with("grpc-status header missing")
        || (status.code() == Code::Unimplemented && !status.message().contains("unknown"))
}

fn has_no_space(status: &Status) -> bool {
    status.code() == Code::ResourceExhausted && status.message().contains("database space exceeded")
}

fn has_differing_data(status: &Status) -> bool {
    status.code() == Code::DataLoss && status.message().contains("corrupt cluster")
}

fn judge(status: &Status) -> (Fault, Certainty, String) {
    use Certainty::{NotApplied, Unknown};
    let told = line(status.message());
    let says = |text: &str| status.message().contains(text);
    match status.code() {
        _ if causes(status).any(|cause| cause.is::<OfAnother>()) => (Fault::AnotherStore, Unknown, told),
        _ if is_no_etcds(status) => (
            Fault::Unreachable,
            Unknown,
            format!(
                "what stands before the member has answered, and not etcd: {told} ({:?})",
                status.code()
            ),
        ),
        // It is said, too, of what was applied: from the crossing of the quota until the alarm rings.
        Code::ResourceExhausted if has_no_space(status) => (
            Fault::Full,
            Unknown,
            "the server is out of space (NOSPACE): whoever holds a lease keeps it, but nobody can take one; compact, \
             defragment, then run etcdctl alarm disarm"
                .to_owned(),
        ),
        Code::DataLoss if has_differing_data(status) => (
            Fault::Internal,
            Unknown,
            "a member's data differ from the others' (alarm CORRUPT): nobody can take a lease or give one back; replace that \
             member, then run etcdctl alarm disarm"
                .to_owned(),
        ),
        Code::ResourceExhausted if status.message() == "etcdserver: too many requests" => {
            (Fault::Busy, NotApplied, format!("{told}; ask again"))
        }
        // What the server's transport says of a request, it says on the way of an answer, too.
        Code::ResourceExhausted if says("message larger than max") => (
            Fault::Invalid,
            Unknown,
            format!("{told}; write less in one transaction"),
        ),
        // The transport says so, too, of a request that it breaks off.
        Code::ResourceExhausted => (Fault::Busy, Unknown, format!("{told}; ask again")),
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
        Code::InvalidArgument if TOO_MUCH.iter().any(|text| says(text)) => {
            (Fault::Invalid, NotApplied, told)
        }
        Code::FailedPrecondition if says("authentication is not enabled") => (
            Fault::Unauthenticated,
            NotApplied,
            format!("{told}; leave user and password out of the URL"),
        ),
        Code::Unavailable | Code::FailedPrecondition if is_unfit(status) => (
            Fault::Unreachable,
            NotApplied,
            format!("{told}; name every voting member in the URL"),
        ),
        Code::Unavailable if has_no_leader(status) => (Fault::Unreachable, NotApplied, NO_LEADER.to_owned()),
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
    causes(status)
        .last()
        .map_or_else(String::new, |last| format!(": {}", line(last)))
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |&error| error.source()).take(CAUSES_MAX)
}

/// How deep the causes of an error are followed.
const CAUSES_MAX: usize = 8;

// No server can be made to answer a transaction and then so, in that very moment.
#[cfg(test)]
mod tests {
    use super::Failure;
    use tenure_core::Certainty::{NotApplied, Unknown};
    use tenure_core::Fault::{Unreachable, Unsupported};
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

    /// Also by a proxy that has passed the request on.
    #[test]
    fn answer_of_no_member_leaves_a_write_unknown() {
        let by_http = "grpc-status header missing, mapped from HTTP status code 404";
        for answer in [Status::unimplemented(by_http), Status::unimplemented("")] {
            let error = failed(&Failure::Status(answer));
            assert_eq!((error.fault, error.certainty), (Unreachable, Unknown), "{error}");
        }
        let by_etcd = Failure::Status(Status::unimplemented("unknown service etcdserverpb.KV"));
        assert_eq!(failed(&by_etcd).fault, Unsupported);
    }

    #[test]
    fn server_of_etcd_that_is_busy_has_done_nothing_and_a_transport_that_says_so_proves_nothing() {
        for (told, certainty) in [
            ("etcdserver: too many requests", NotApplied),
            ("h2 protocol error: ENHANCE_YOUR_CALM, too many requests", Unknown),
            ("etcdserver: mvcc: database space exceeded", Unknown),
        ] {
            let error = failed(&Failure::Status(Status::resource_exhausted(told)));
            assert_eq!(error.certainty, certainty, "{error}");
        }
    }

    /// Servers before 3.6 say so in the first way, and later ones in the other.
    #[test]
    fn member_that_is_of_no_use_yet_is_left_and_has_done_nothing() {
        for told in [
            "etcdserver: rpc not supported for learner",
            "etcdserver: not capable",
        ] {
            for status in [Status::unavailable(told), Status::failed_precondition(told)] {
                let failure = Failure::of_stream(status);
                assert!(failure.ends_connection(), "{told}");
                let error = failed(&failure);
                assert_eq!(
                    (error.fault, error.certainty),
                    (Unreachable, NotApplied),
                    "{error}"
                );
            }
        }
        let other = Failure::Status(Status::failed_precondition("etcdserver: user name not found"));
        assert!(!other.ends_connection());
    }

    #[test]
    fn member_that_loses_its_leader_may_have_applied_what_was_asked_on_a_stream() {
        let told = || Status::unavailable("etcdserver: no leader");
        let (alone, streamed) = (Failure::Status(told()), Failure::of_stream(told()));
        assert!(alone.ends_connection() && streamed.ends_connection());
        let (alone, streamed) = (failed(&alone), failed(&streamed));
        assert_eq!((alone.certainty, streamed.certainty), (NotApplied, Unknown));
        assert_eq!(alone.message, streamed.message);
        let denied = Failure::of_stream(Status::permission_denied("etcdserver: permission denied"));
        assert_eq!(failed(&denied).certainty, NotApplied);
    }

    #[test]
    fn failure_after_an_applied_transaction_is_unknown_whatever_it_says() {
        for failure in [
            Failure::undialled("nobody can be reached".to_owned()),
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
