//! What the driver's errors mean to the contract: fault, certainty, one line for a person.

use crate::heard::OUTDATED;
use mongodb::bson::Document;
use mongodb::error::{Error, ErrorKind, WriteFailure};
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::TlsWords;
pub(crate) use tenure_remote::{Deed, after_a_step, line};

/// The server refused an insert because the key exists.
pub(crate) const DUPLICATE_KEY: i32 = 11000;

/// What was asked for exists between members of a replica set alone, and the server is none.
pub(crate) const NOT_A_REPLICA_SET: i32 = 123;

/// Who asks may not do it, or is nobody.
const UNAUTHORIZED: i32 = 13;

/// What Atlas refuses itself, whatever the reason: a missing right, a full cluster, or one with too many
/// collections.
const ATLAS: i32 = 8000;

/// Somebody has blocked all writes of users (`setUserWriteBlockMode`).
const WRITES_ARE_BLOCKED: i32 = 371;

/// The duplicate-key refusal of an upsert: it lost a race, or a foreign record has the key.
pub(crate) fn is_duplicate_key(error: &Error) -> bool {
    let message = match &*error.kind {
        ErrorKind::Command(command) => &command.message,
        ErrorKind::Write(WriteFailure::WriteError(write)) => &write.message,
        _ => return false,
    };
    server_code(error).is_some_and(|code| is_key_of_id(code, message))
}

/// The server's refusal of a second document of an `_id`, and not by another unique index.
pub(crate) fn is_key_of_id(code: i32, message: &str) -> bool {
    code == DUPLICATE_KEY && unique_index(message).is_none()
}

/// The index by which the server refuses a key that is there, where it is not that of `_id`: one of somebody
/// else's.
fn unique_index(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(" index: ")?;
    let (name, _) = rest.split_once(" dup key: ")?;
    Some(name).filter(|name| *name != "_id_")
}

/// The error code of the server's answer; `None` where there was none.
pub(crate) fn server_code(error: &Error) -> Option<i32> {
    match &*error.kind {
        ErrorKind::Command(command) => Some(command.code),
        ErrorKind::Write(WriteFailure::WriteError(write)) => Some(write.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => Some(concern.code),
        _ => None,
    }
}

/// Whether the server knows nobody on this connection: nobody has logged in on it, or the user was dropped
/// since, whoever has its name now.
pub(crate) fn is_without_user(error: &Error) -> bool {
    match &*error.kind {
        ErrorKind::Command(command) => command.code == UNAUTHORIZED && asks_for_a_user(&command.message),
        _ => false,
    }
}

fn asks_for_a_user(message: &str) -> bool {
    message.contains("requires authentication")
}

/// Translates `error`. `subject` is what it happened to, as `lease "x"`; `place` is the store's location.
pub(crate) fn store_error(error: &Error, deed: Deed, subject: &str, place: &str) -> StoreError {
    let (fault, certainty, why) = judge(error);
    deed.error(fault, certainty, subject, place, why)
}

/// What a client does by itself when the answer to a write is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repeats {
    /// It tells: a client that the store has made.
    Nothing,
    /// It may send the write once more (`retryWrites`): a client of the user's, whose settings the driver
    /// does not show.
    Writes,
}

impl Repeats {
    /// As [`store_error`], of this client. Where a write was repeated, the server's refusal is that of the
    /// repetition: the write whose answer was lost may have been applied all the same.
    pub(crate) fn store_error(self, error: &Error, deed: Deed, subject: &str, place: &str) -> StoreError {
        let told = store_error(error, deed, subject, place);
        let of_a_repetition = self == Self::Writes && deed == Deed::Write && server_code(error).is_some();
        match of_a_repetition {
            true => after_a_step(told),
            false => told,
        }
    }
}

/// Nobody answered within the time allowed.
pub(crate) fn timed_out(deed: Deed, subject: &str, place: &str, allowed: Duration) -> StoreError {
    let check = "the network and whether the primary is frozen";
    tenure_remote::timed_out(deed, subject, place, allowed, check)
}

/// What an entry of `writeErrors` or a `writeConcernError` in the answer to a command of ours means.
pub(crate) fn reported(answer: &Document, certainty: Certainty, subject: &str, place: &str) -> StoreError {
    let code = answer.get_i32("code").unwrap_or(0);
    let (fault, _, why) = by_code(code, answer.get_str("errmsg").unwrap_or("no message"));
    Deed::Write.error(fault, certainty, subject, place, why)
}

fn judge(error: &Error) -> (Fault, Certainty, String) {
    use Certainty::{NotApplied, Unknown};
    match &*error.kind {
        ErrorKind::Command(command) => by_code(command.code, &command.message),
        ErrorKind::Write(WriteFailure::WriteError(write)) => by_code(write.code, &write.message),
        ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => {
            // Applied on the primary, but not confirmed: it may be rolled back, or may stand.
            let (fault, _, why) = by_code(concern.code, &concern.message);
            (fault, Unknown, format!("not confirmed by a majority: {why}"))
        }
        ErrorKind::Authentication { message, .. } => (
            Fault::Unauthenticated,
            NotApplied,
            format!(
                "the credentials were refused ({}); check user, password and authSource",
                line(message)
            ),
        ),
        ErrorKind::ServerSelection { message, .. } => (Fault::Unreachable, NotApplied, unselected(message)),
        ErrorKind::DnsResolve { message, .. } => (Fault::Unreachable, NotApplied, line(message)),
        ErrorKind::Io(io) => {
            // The driver puts this label on errors of establishing a connection: nothing was sent on it.
            let certainty = match error.contains_label(mongodb::error::SYSTEM_OVERLOADED_ERROR) {
                true => NotApplied,
                false => Unknown,
            };
            (Fault::Unreachable, certainty, TLS.connection_failed(io))
        }
        ErrorKind::ConnectionPoolCleared { .. } => (
            Fault::Unreachable,
            Unknown,
            "the connection was closed because the server failed another request".to_owned(),
        ),
        ErrorKind::IncompatibleServer { message, .. } => (Fault::Unsupported, NotApplied, line(message)),
        ErrorKind::SessionsNotSupported => (
            Fault::Unsupported,
            NotApplied,
            "the server has no sessions; MongoDB 5.0 or later is needed".to_owned(),
        ),
        ErrorKind::InvalidTlsConfig { message, .. } => (Fault::Invalid, NotApplied, line(message)),
        ErrorKind::InvalidArgument { message, .. } => (Fault::Invalid, NotApplied, line(message)),
        other => (Fault::Internal, Unknown, line(other)),
    }
}

const TLS: TlsWords = TlsWords {
    plain: "tls=false",
    roots: "tlsCAFile=",
    own: "renew it, or name one by tlsCertificateKeyFile=",
};

/// The driver's words before the servers that it may choose from; it has left out every one of the URL where
/// they are missing.
const CHOICE: &str = "Servers: [";

/// Why no server was found: the driver tells in one text what it knows of each, and the first failure stands
/// for all.
fn unselected(message: &str) -> String {
    let failure = message
        .split_once("Error: Kind: ")
        .and_then(|(_, rest)| rest.split(", labels: ").next());
    let failure = failure.map_or_else(String::new, |failure| format!(" ({})", line(failure)));
    if message.contains(OUTDATED) {
        return "the driver has met a later primary, or a later configuration of the set, than the primary that is there: that one was deposed and \
                does not know yet, or the set was restored or made anew; then start this process anew"
            .to_owned();
    }
    // It has left out whoever is of no set, or of another.
    if !message.contains(CHOICE) {
        return "no server of the URL is of a replica set that could be meant; several hosts must be members of one: check host, port and \
                replicaSet in the URL, and start each with --replSet"
            .to_owned();
    }
    let way_out = TLS.way_out(message);
    format!(
        "no primary could be reached in time{failure}; check host, port, TLS and replicaSet in the URL, and the set's \
         state{way_out}"
    )
}

/// By the server's code. Certainty holds for a refusal of a single statement.
fn by_code(code: i32, message: &str) -> (Fault, Certainty, String) {
    use Certainty::{NotApplied, Unknown};
    let told = || format!("{} (code {code})", line(message));
    match code {
        18 | 11 => (
            Fault::Unauthenticated,
            NotApplied,
            format!("{}; check user, password and authSource", told()),
        ),
        UNAUTHORIZED if asks_for_a_user(message) => (
            Fault::Unauthenticated,
            NotApplied,
            "the server asks for credentials, and the URL names no user, or the one that this connection is of was dropped or made \
             anew since; write mongodb://user:password@host, or start this process anew"
                .to_owned(),
        ),
        UNAUTHORIZED => (Fault::Forbidden, NotApplied, forbidden(message)),
        ATLAS if message.contains("not allowed to do action") => (Fault::Forbidden, NotApplied, told()),
        ATLAS if message.contains("quota") => full(told()),
        // Refused at the door: the node takes no writes.
        10107 | 13435 | 10058 => (
            Fault::Unreachable,
            NotApplied,
            format!("the server is not the primary (code {code}); an election may be under way"),
        ),
        // Going down or stepping down: the statement may have been written before.
        189 | 91 | 11600 | 11602 | 13436 | 6 | 7 | 89 | 9001 => (
            Fault::Unreachable,
            Unknown,
            format!("the primary is going away: {}", told()),
        ),
        50 | 64 | 202 | 262 => (Fault::TimedOut, Unknown, told()),
        112 | 24 | 46 => (Fault::Busy, NotApplied, told()),
        DUPLICATE_KEY => match unique_index(message) {
            None => (
                Fault::Busy,
                NotApplied,
                "the record keeps changing under the request (code 11000); ask again".to_owned(),
            ),
            Some(index) => (
                Fault::Invalid,
                NotApplied,
                format!(
                    "a unique index of the collection refuses the record (code 11000); remove it: dropIndex(\"{}\")",
                    line(index)
                ),
            ),
        },
        14031 => full(told()),
        121 => (
            Fault::Invalid,
            NotApplied,
            format!(
                "the collection's validator refused the record: {}; remove the validator",
                told()
            ),
        ),
        // Whoever has blocked writes, as for a move, allows them again: a campaign goes on until then.
        WRITES_ARE_BLOCKED => (
            Fault::Busy,
            NotApplied,
            format!("{}; allow writes with setUserWriteBlockMode", told()),
        ),
        20 | 166 => (Fault::Unsupported, NotApplied, told()),
        // No name for it, or one that differs from another database's in case alone.
        73 | 13297 => (
            Fault::Invalid,
            NotApplied,
            format!("{}; name another database or collection", told()),
        ),
        NOT_A_REPLICA_SET | 100 | 79 => (Fault::Unsupported, Unknown, told()),
        _ => (Fault::Internal, Unknown, told()),
    }
}

/// Whoever frees space mends it: a campaign goes on until then.
fn full(told: String) -> (Fault, Certainty, String) {
    (
        Fault::Full,
        Certainty::Unknown,
        format!("{told}; free space on the server"),
    )
}

/// Names what the user may not do, and what to grant; the server's own text repeats the whole command.
fn forbidden(message: &str) -> String {
    let command = message
        .split_once("to execute command { ")
        .and_then(|(_, rest)| rest.split(':').next())
        .unwrap_or("");
    let (privilege, grant) = match command {
        "findAndModify" | "update" => (
            "the privileges \"find\", \"insert\" and \"update\"",
            "grant a role with them on the collection, or readWrite",
        ),
        "aggregate" => (
            "the privilege \"changeStream\" or \"find\"",
            "grant a role with both on the collection, or read",
        ),
        "find" => (
            "the privilege \"find\"",
            "grant a role with it on the collection, or read",
        ),
        "createIndexes" => (
            "the privilege \"createIndex\"",
            "grant a role with it on the collection, or readWrite",
        ),
        _ => {
            return format!(
                "not allowed: {} (code 13); grant the missing privilege",
                line(message)
            );
        }
    };
    format!("the user lacks {privilege} for {command} (code 13); {grant}")
}

#[cfg(test)]
mod tests {
    use super::{Certainty, Fault, by_code};

    /// A full cluster is mended by who frees space, without starting all candidates anew.
    #[test]
    fn what_atlas_refuses_ends_a_campaign_only_where_a_right_is_missing() {
        for (message, fault) in [
            (
                "you are over your space quota, using 513 MB of 512 MB",
                Fault::Full,
            ),
            (
                "cannot create a new collection -- already using 500 collections of 500",
                Fault::Internal,
            ),
            (
                "user is not allowed to do action [update] on [bank.job_leases]",
                Fault::Forbidden,
            ),
        ] {
            let (told, _, why) = by_code(8000, message);
            assert_eq!(told, fault, "{why}");
            assert_eq!(told.is_misconfiguration(), fault == Fault::Forbidden);
            assert!(why.contains(message), "{why}");
        }
    }

    /// No candidate can lead before another name is given: to try on would hide it.
    #[test]
    fn a_name_that_the_server_does_not_take_ends_a_campaign() {
        for (code, message) in [
            (73, "Invalid namespace specified 'ba.nk.job_leases'"),
            (
                13297,
                "db already exists with different case already have: [mongolocks] trying to create [MongoLocks]",
            ),
        ] {
            let (fault, certainty, why) = by_code(code, message);
            assert_eq!(
                (fault, certainty),
                (Fault::Invalid, Certainty::NotApplied),
                "{why}"
            );
            assert!(
                why.contains(message) && why.contains("name another database"),
                "{why}"
            );
        }
    }

    /// It is `PathNotViable`: an update that does not fit the record.
    #[test]
    fn a_path_that_leads_nowhere_is_no_full_disk() {
        let (fault, _, why) = by_code(28, "Cannot create field 'city' in element {address: \"x\"}");
        assert_eq!(fault, Fault::Internal, "{why}");
        assert_eq!(by_code(14031, "no space").0, Fault::Full);
    }
}
