//! What is asked on a new connection before anything else, in one request: whose tables the server has, and
//! what its session is fit for.

use crate::row::number;
use crate::schema::ALL_ROWS;
use crate::server::MARIADB_MIN;
use crate::short::FIT;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Row};

/// How long a request waits for a table that somebody keeps locked, in seconds: the least that both servers
/// know. By itself MySQL waits for a year, and goes on when nobody waits for the answer any more: each
/// request that is given up would leave a session there, and a lease be granted at last to who is gone.
const TABLE_WAIT_S: u32 = 1;

/// The number that the set-up has given its tables.
const STORE_NUMBER: &str = "(SELECT version FROM tenure_setup WHERE one = 2)";

/// A connection, and what was answered.
pub(crate) struct Greeted {
    pub(crate) conn: Conn,
    /// The number of the store that is there; none where there is none, or its set-up is an earlier Tenure's.
    pub(crate) store: Option<i64>,
    /// Whether the session is fit for the short way.
    pub(crate) is_fit: bool,
}

/// Asks, and has requests of this session wait for no table for long. But for a session that is not the
/// client's own: behind a pooler another program has it next.
///
/// # Errors
/// The connection is of no use, or its server cannot be told from another.
pub(crate) async fn greeted(mut conn: Conn) -> Result<Greeted, Error> {
    let id = conn.id();
    // Nothing of the short way is asked of a MySQL, whose versions have lower numbers; one with a higher
    // refuses the question.
    let mut fit = (conn.server_version() >= MARIADB_MIN).then(|| format!("{FIT}{id}"));
    loop {
        // Reading comes first: a pooler goes by how a request begins. What is read waits for no table either,
        // by words that MySQL alone knows: MariaDB ends by itself what nobody waits for.
        let asked = format!(
            "SELECT /*+ SET_VAR(lock_wait_timeout = {TABLE_WAIT_S}) */ {STORE_NUMBER}, {} {ALL_ROWS}; \
             SET SESSION lock_wait_timeout = CAST(IF(CONNECTION_ID() = {id}, {TABLE_WAIT_S}, @@SESSION.lock_wait_timeout) AS UNSIGNED)",
            fit.as_deref().unwrap_or("0")
        );
        let told: Option<Row> = match conn.query_first(asked).await {
            Err(Error::Server(answer)) if answer.code == UNKNOWN_VARIABLE && fit.is_some() => {
                fit = None;
                continue;
            }
            Err(Error::Server(answer)) if NO_SETUP.contains(&answer.code) => None,
            told => told?,
        };
        let says = |column| told.as_ref().and_then(|row| number(row, column));
        return Ok(Greeted {
            store: says(0),
            is_fit: says(1) == Some(1),
            conn,
        });
    }
}

/// What a server answers to who asks for a table, or a column, that is not there.
const NO_SETUP: [u16; 2] = [1146, 1054];

/// What it answers to who asks for a variable that it does not know.
const UNKNOWN_VARIABLE: u16 = 1193;
