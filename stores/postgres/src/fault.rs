//! What the driver's errors mean to the contract: fault, certainty, one line for a person.

use crate::schema::LATER;
use std::error::Error as _;
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::TlsWords;
pub(crate) use tenure_remote::{Deed, line};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Translates `error`. `subject` is what it happened to, as `lease "x"`; `place` is the store's location.
pub(crate) fn store_error(error: &Error, deed: Deed, subject: &str, place: &str) -> StoreError {
    let (fault, certainty, why) = match error.as_db_error() {
        Some(answer) => by_answer(answer),
        None if lacks_password(error) => {
            let why = "the server asks for a password".to_owned();
            (Fault::Unauthenticated, Certainty::NotApplied, why)
        }
        None => (Fault::Unreachable, Certainty::Unknown, without_answer(error)),
    };
    deed.error(fault, certainty, subject, place, why)
}

/// Nobody answered within the time allowed.
pub(crate) fn timed_out(deed: Deed, subject: &str, place: &str, allowed: Duration) -> StoreError {
    let check = "the network, and whether the server is frozen or a synchronous standby is missing";
    tenure_remote::timed_out(deed, subject, place, allowed, check)
}

/// Whether the connection is of no use any more: it is broken, or leads to a server that takes no writes.
pub(crate) fn ends_connection(error: &Error) -> bool {
    match error.as_db_error() {
        None => true,
        Some(answer) => breaks_off(answer) || *answer.code() == SqlState::READ_ONLY_SQL_TRANSACTION,
    }
}

/// Whether it says that something ended on the way, and not what became of the statement: the connection, or
/// behind a pooler the server's (class 08), the server or the session (57P), the system under it (58).
fn breaks_off(answer: &DbError) -> bool {
    let code = answer.code().code();
    is_fatal(answer) || ["08", "57P", "58"].iter().any(|class| code.starts_with(class))
}

fn is_fatal(answer: &DbError) -> bool {
    match answer.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        // What PgBouncer says of its own has only the field that PostgreSQL translates; it never does.
        None => matches!(answer.severity(), "FATAL" | "PANIC"),
    }
}

/// Whether the server asks for a password, and the driver was given none: nothing was asked of it then. It
/// has no kind of error for that.
fn lacks_password(error: &Error) -> bool {
    error
        .source()
        .is_some_and(|source| source.to_string() == "password missing")
}

fn without_answer(error: &Error) -> String {
    match error.source() {
        // Certificates, sockets and names; none of them knows the password.
        Some(source) => TLS.connection_failed(source),
        None => TLS.connection_failed(error),
    }
}

/// The way out where the queue of notifications is full: it is cut behind what every session that listens has
/// read, which none does in a transaction; and not by who finds no room in it.
pub(crate) const END_LISTENER: &str = "end the session that listens and keeps a transaction open, which the server's log names, then have \
     SELECT pg_notification_queue_usage() cut the queue";

/// The way out where rows that several have locked at once fill their room, or transaction ids run out.
pub(crate) const FREEZE: &str =
    "vacuumdb --all --freeze, and see that autovacuum runs and nothing is left open for long";

pub(crate) const TLS: TlsWords = TlsWords {
    plain: "sslmode=disable",
    roots: "sslrootcert=",
    own: "none can be named for PostgreSQL, so let this role in without (pg_hba.conf)",
};

/// What there is no room for: of what a statement of ours comes to, notifications, transaction ids, or rows
/// that several have locked at once. The server says it in its own language, and by which of its sources it
/// says it in none. A renewal that has waited for a row locks it in a subtransaction, and changes it in
/// another: where there is no room for the multixact of the two, it is told this as well, and the next beat,
/// which finds the row free, needs none.
fn without_room(answer: &DbError, told: &str) -> String {
    let way_out = match answer.file() {
        Some("async.c") => END_LISTENER.to_owned(),
        Some("varsup.c" | "multixact.c") => FREEZE.to_owned(),
        Some(_) | None => {
            format!("{END_LISTENER}; or, where it is wraparound that the server avoids, {FREEZE}")
        }
    };
    match answer.hint() {
        Some(hint) => format!("{told}; {way_out}; the server's hint: {}", line(hint)),
        None => format!("{told}; {way_out}"),
    }
}

fn told(answer: &DbError) -> String {
    format!("{} ({})", line(answer.message()), answer.code().code())
}

/// A statement that the server refused changed nothing, as each is a transaction of its own. What
/// [broke off](breaks_off) was perhaps not refused.
fn by_answer(answer: &DbError) -> (Fault, Certainty, String) {
    let certainty = if breaks_off(answer) || *answer.code() == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN {
        Certainty::Unknown
    } else {
        Certainty::NotApplied
    };
    let told = told(answer);
    let (fault, why) = match (answer.code(), &answer.code().code()[..2]) {
        (&SqlState::READ_ONLY_SQL_TRANSACTION, _) => (
            Fault::Unreachable,
            format!("{told}; the server is no primary any more, a fail-over may be under way"),
        ),
        (&SqlState::INSUFFICIENT_PRIVILEGE, _) => (
            Fault::Forbidden,
            format!("{told}; the store's README names the grants that are needed"),
        ),
        (&SqlState::INVALID_CATALOG_NAME, _) => {
            (Fault::Invalid, format!("{told}; name a database in the URL"))
        }
        (&SqlState::DISK_FULL, _) => (Fault::Full, format!("{told}; free space on the server")),
        (&SqlState::PROGRAM_LIMIT_EXCEEDED, _) => (Fault::Full, without_room(answer, &told)),
        (&SqlState::QUERY_CANCELED, _) => (
            Fault::TimedOut,
            format!("{told}; raise the role's statement_timeout, or look for what blocks it"),
        ),
        (&SqlState::LOCK_NOT_AVAILABLE, _) => (
            Fault::Busy,
            format!(
                "{told}; another transaction keeps the row locked, or has a NOTIFY in its commit (an object of database 0); look in \
                 pg_locks for it"
            ),
        ),
        (&SqlState::TOO_MANY_CONNECTIONS, _) | (_, "40" | "53") => (Fault::Busy, told),
        (_, "28") => (Fault::Unauthenticated, format!("{told}; check user and password")),
        (state, _) if state.code() == LATER => (
            Fault::Unsupported,
            format!("{told}; run `tenure store init` of the latest Tenure that uses the schema"),
        ),
        // Functions, tables or columns are missing or of other types.
        (_, "42" | "3F") => (
            Fault::Unsupported,
            format!("{told}; the schema is not as this version of Tenure makes it: run `tenure store init`"),
        ),
        (_, "57" | "08") => (Fault::Unreachable, told),
        _ => (Fault::Internal, told),
    };
    (fault, certainty, why)
}
