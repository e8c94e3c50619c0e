//! What the driver's errors mean to the contract: fault, certainty, one line for a person.

use crate::schema::{BUSY, FOREIGN, READ_ONLY, STALE, UNCLAIMED};
use mysql_async::{DriverError, Error, IoError, ServerError};
use std::time::Duration;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, TlsWords, line};

/// Translates `error`. `subject` is what it happened to, as `lease "x"`; `place` is the store's location.
pub(crate) fn store_error(error: &Error, deed: Deed, subject: &str, place: &str) -> StoreError {
    let (fault, certainty, why) = match error {
        Error::Server(answer) => by_answer(answer),
        Error::Io(error) => (Fault::Unreachable, Certainty::Unknown, broken(error)),
        Error::Driver(error) => by_driver(error),
        Error::Url(_) | Error::Other(_) => (
            Fault::Internal,
            Certainty::Unknown,
            "the driver failed; ask again".to_owned(),
        ),
    };
    deed.error(fault, certainty, subject, place, why)
}

/// Nobody answered within the time allowed.
pub(crate) fn timed_out(deed: Deed, subject: &str, place: &str, allowed: Duration) -> StoreError {
    let check = "the network, and whether the server is frozen, full or waits for a replica";
    tenure_remote::timed_out(deed, subject, place, allowed, check)
}

/// Whether the connection is of no use any more: it is broken, or leads to a server that takes no writes, or
/// nobody knows what became of the statement. A killed procedure runs its handlers or not, by the server and
/// by the moment: without them its transaction stays open, with the rows that it had locked, and the
/// session's settings as it had changed them. The connection's end ends both.
pub(crate) fn ends_connection(error: &Error) -> bool {
    match error {
        Error::Server(answer) => by_answer(answer).1 == Certainty::Unknown || takes_no_writes(answer),
        Error::Io(_) | Error::Driver(_) | Error::Url(_) | Error::Other(_) => true,
    }
}

/// Whether a server says that it takes no writes.
pub(crate) fn takes_no_writes(answer: &ServerError) -> bool {
    answer.state == READ_ONLY || matches!(answer.code, 1290 | 1792 | 1836)
}

/// Whether a fence refused by the statements of the schema.
pub(crate) fn is_refusal(answer: &ServerError) -> bool {
    [STALE, FOREIGN, UNCLAIMED].contains(&answer.state.as_str())
}

/// Whether a row was changed since the transaction began to read. MariaDB says so from 11.6 on, unless
/// innodb_snapshot_isolation is off.
pub(crate) fn has_changed(answer: &ServerError) -> bool {
    answer.code == 1020
}

/// Shutting down, killed, idle for too long.
pub(crate) fn is_going(code: u16) -> bool {
    matches!(code, 1053 | 1077 | 1079 | 1152..=1161 | 1184 | 1927 | 4031)
}

fn broken(error: &IoError) -> String {
    // Certificates, sockets and names; none of them knows the password.
    match error {
        IoError::Io(error) => TLS.connection_failed(error),
        IoError::Tls(error) => TLS.connection_failed(format!("encryption: {error}")),
    }
}

const TLS: TlsWords = TlsWords {
    plain: "ssl-mode=disabled",
    roots: "ssl-ca=",
    own: "renew it, or name one by ssl-cert= and ssl-key=",
};

/// Not in the driver's own words where they quote what was received.
fn by_driver(error: &DriverError) -> (Fault, Certainty, String) {
    match error {
        DriverError::NoClientSslFlagFromServer => (
            Fault::Unsupported,
            Certainty::NotApplied,
            "the server does not encrypt; set it up with a certificate, or say ssl-mode=disabled".to_owned(),
        ),
        DriverError::UnknownAuthPlugin { .. }
        | DriverError::MysqlOldPasswordDisabled
        | DriverError::CleartextPluginDisabled => (
            Fault::Unauthenticated,
            Certainty::NotApplied,
            "the server asks for a way to authenticate that is not supported; use caching_sha2_password or \
             mysql_native_password"
                .to_owned(),
        ),
        DriverError::NoKeyFound => (
            Fault::Unreachable,
            Certainty::NotApplied,
            "the file that ssl-key= names holds no private key any more".to_owned(),
        ),
        DriverError::ConnectionClosed => (
            Fault::Unreachable,
            Certainty::Unknown,
            "the connection was closed".to_owned(),
        ),
        _ => (
            Fault::Unreachable,
            Certainty::Unknown,
            "the other side does not speak MySQL's protocol as expected; check host and port".to_owned(),
        ),
    }
}

/// A statement that the server refused changed nothing where the code says so: each is a transaction of its
/// own, and what fails in it is rolled back before the error is sent. Of the others, nobody knows.
fn by_answer(answer: &ServerError) -> (Fault, Certainty, String) {
    let told = format!("{} ({})", line(&answer.message), answer.code);
    let refused = |fault, why: String| (fault, Certainty::NotApplied, why);
    match answer.code {
        _ if answer.state == READ_ONLY => refused(
            Fault::Unreachable,
            format!("{told}; it is no primary any more, a fail-over may be under way"),
        ),
        1290 | 1836 => refused(
            Fault::Unreachable,
            format!("{told}; the server takes no writes, a fail-over may be under way"),
        ),
        1792 => refused(
            Fault::ReadOnly,
            format!("{told}; take transaction_read_only or tx_read_only back for this role"),
        ),
        _ if answer.state == BUSY => refused(Fault::Busy, told),
        1044 | 1142 | 1143 | 1227 | 1370 => refused(
            Fault::Forbidden,
            format!("{told}; the store's README names the grants that are needed"),
        ),
        1419 => refused(
            Fault::Forbidden,
            format!(
                "{told}; set log_bin_trust_function_creators, or have somebody with SUPER guard the table"
            ),
        ),
        // The same words for whoever does not come as the account demands it.
        1045 => refused(
            Fault::Unauthenticated,
            format!(
                "{told}; check user and password, and whether the account requires TLS (ssl-mode=required) or a certificate \
                 (ssl-cert= and ssl-key=)"
            ),
        ),
        3159 => refused(
            Fault::Unauthenticated,
            format!("{told}; say ssl-mode=required, or verify-identity"),
        ),
        1130 | 1524 | 1698 | 1820 | 1862 | 3118 | 4151 => {
            refused(Fault::Unauthenticated, format!("{told}; check user and password"))
        }
        1049 => refused(
            Fault::Invalid,
            format!("{told}; name a database that exists, or create it"),
        ),
        1040 => refused(
            Fault::Busy,
            format!("{told}; raise max_connections, or look for who holds them"),
        ),
        1203 | 1226 => refused(
            Fault::Busy,
            format!(
                "{told}; raise the user's limits (MAX_USER_CONNECTIONS, max_user_connections), or look for who holds its \
                 connections"
            ),
        ),
        1205 => refused(
            Fault::Busy,
            format!(
                "{told}; another transaction keeps the row locked, look in information_schema.innodb_trx for it; or somebody the \
                 table, as a dump without --single-transaction (LOCK TABLES), FLUSH TABLES WITH READ LOCK and ALTER TABLE do"
            ),
        ),
        // Two that met, also (1062) at a row that neither had found, or (1020) a record that changed since
        // the transaction began to read, or (1412) a table that a set-up has mended since.
        1020 | 1062 | 1213 | 1412 | 3572 => refused(Fault::Busy, told),
        1021 | 1114 => refused(Fault::Full, format!("{told}; free space on the server")),
        1064 | 1306..=1310 => refused(Fault::Unsupported, told),
        1317 | 1969 | 3024 => (
            Fault::TimedOut,
            Certainty::Unknown,
            format!(
                "{told}; raise max_statement_time or max_execution_time, or look for who kills statements"
            ),
        ),
        1047 => (Fault::Unreachable, Certainty::Unknown, told),
        // What MySQL says where a table that an earlier Tenure has made was opened by a session of that mode.
        // The next try may meet the table as another has opened it, so it ends no campaign.
        3819 => refused(
            Fault::Internal,
            format!(
                "{told}; tables of an earlier Tenure refuse sound names once a session with NO_BACKSLASH_ESCAPES in its sql_mode \
                 has used them: run `tenure store init`"
            ),
        ),
        code if is_going(code) => (Fault::Unreachable, Certainty::Unknown, told),
        code => match unsupported(code) {
            Some(way_out) => refused(Fault::Unsupported, format!("{told}; {way_out}")),
            None => (Fault::Internal, Certainty::Unknown, told),
        },
    }
}

/// The way out where tables or settings will not do.
fn unsupported(code: u16) -> Option<&'static str> {
    Some(match code {
        // Tables, columns or procedures are missing or of other types.
        1054 | 1109 | 1146 | 1305 | 1318 => {
            "the tables are not as this version of Tenure makes them: run `tenure store init`"
        }
        1665 => "set binlog_format to ROW or MIXED",
        1568 => "run `tenure store init`, or set autocommit for this session (init_connect)",
        _ => return None,
    })
}
