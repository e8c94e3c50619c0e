//! The short way: the two commonest requests, to take a lease that is free and to give one back, as one
//! prepared statement each, which takes half the time of the procedure. It is MariaDB's alone: MySQL has no
//! words that bound a statement's wait for a row without leaving that in the session, and none that answer
//! with the row that was written.
//!
//! What such a statement has done it proves; whatever else it meets it leaves as it is, and the procedure
//! decides.

use crate::fault::{ends_connection, is_going};
use crate::schema::{VERSION, code, filled};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Params, Row, Statement, Value};
use tenure_core::{Acquire, Release};

/// What the procedures settle by themselves, each in its call, and a prepared statement cannot, is asked
/// once: nobody else changes this session. Where the server's number of it is not the one that it was greeted
/// with, somebody stands between, who may give the next statement another session. A binary log of statements
/// would have a replica judge by its own settings.
pub(crate) const FIT: &str = "@@SESSION.autocommit = 1 AND @@in_transaction = 0 AND @@SESSION.character_set_client = 'utf8mb4' \
     AND @@SESSION.character_set_connection = 'utf8mb4' AND (@@GLOBAL.log_bin = 0 OR @@SESSION.binlog_format <> 'STATEMENT') \
     AND FIND_IN_SET('STRICT_TRANS_TABLES', @@SESSION.sql_mode) > 0 \
     AND FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) = 0 \
     AND FIND_IN_SET('SIMULTANEOUS_ASSIGNMENT', @@SESSION.sql_mode) = 0 AND CONNECTION_ID() = ";

/// What a server answers to a null where there may be none, by which the statement that takes a lease says
/// that it does not; and where it does not know, or would have to make anew, what was prepared. None of these
/// changes anything.
const REFUSALS: [u16; 3] = [1048, 1243, 1615];

/// Both statements, for who measures what they cost by themselves: no part of the API.
#[must_use]
pub fn statements() -> [String; 2] {
    [take(), vacate()]
}

/// The statement that takes a lease that is free.
fn take() -> String {
    standing_in_for("acquire", include_str!("sql/take.sql"))
}

/// The statement that gives a lease back.
fn vacate() -> String {
    standing_in_for("release", include_str!("sql/vacate.sql"))
}

/// Who looks at the server's list of statements sees the procedure that this is instead of.
fn standing_in_for(procedure: &str, part: &str) -> String {
    format!("/* tenure_{procedure}_{VERSION} */ {}", filled(&code(part)))
}

/// A request that has a short way.
pub(crate) enum Short {
    Take(Vec<Value>),
    Vacate(Vec<Value>),
}

impl Short {
    pub(crate) fn take(request: &Acquire) -> Self {
        let ttl_ms = request.ttl.as_millis();
        Self::Take(vec![
            request.name.as_str().into(),
            request.candidate.id.as_str().into(),
            request.candidate.incarnation.to_string().into(),
            request.attempt.number().into(),
            ttl_ms.into(),
            ttl_ms.into(),
            request.note.as_str().into(),
        ])
    }

    pub(crate) fn vacate(request: &Release) -> Self {
        Self::Vacate(vec![
            request.name.as_str().into(),
            request.incarnation.to_string().into(),
            request.token.signed().into(),
            request.attempt.number().into(),
        ])
    }
}

/// The short way of one session.
pub(crate) enum ShortWay {
    Open {
        take: Statement,
        vacate: Statement,
    },
    /// The session is not as the statements need it, or the server does not know them.
    Closed,
}

impl ShortWay {
    /// Prepares the statements in a session that is [fit](FIT) for them. Whatever the server refuses of that,
    /// as it keeps no more statements or the role may not write, the procedures will tell if it is wrong.
    ///
    /// # Errors
    /// The connection is of no use.
    pub(crate) async fn open(conn: &mut Conn) -> Result<Self, Error> {
        match Self::prepared(conn).await {
            Err(Error::Server(answer)) if !is_going(answer.code) => Ok(Self::Closed),
            prepared => prepared,
        }
    }

    async fn prepared(conn: &mut Conn) -> Result<Self, Error> {
        Ok(Self::Open {
            take: conn.prep(take()).await?,
            vacate: conn.prep(vacate()).await?,
        })
    }

    /// What the statement has answered if it has done what was asked.
    ///
    /// # Errors
    /// After which nobody knows, and such as the procedure would meet as well.
    pub(crate) async fn done(&self, conn: &mut Conn, asked: &Short) -> Result<Option<Vec<Row>>, Error> {
        let Self::Open { take, vacate } = self else {
            return Ok(None);
        };
        let (statement, values) = match asked {
            Short::Take(values) => (take, values),
            Short::Vacate(values) => (vacate, values),
        };
        let values = Params::Positional(values.clone());
        // To the last word: an error of the commit comes after the rows.
        match (conn.exec::<Row, _, _>(statement, values).await, asked) {
            (Ok(rows), Short::Take(_)) => Ok(Some(rows)),
            (Ok(rows), Short::Vacate(_)) => Ok((conn.affected_rows() == 1).then_some(rows)),
            (Err(error), _) if is_refusal(&error) => Ok(None),
            (Err(error), _) => Err(error),
        }
    }
}

/// Whether a server says that it has changed nothing, and may be asked otherwise.
fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Server(answer) => REFUSALS.contains(&answer.code) || !ends_connection(error),
        _ => false,
    }
}
