//! One connection, and what is known of its session.

use crate::short::ShortWay;
use mysql_async::Conn;
use std::time::Duration;

/// How long a connection may take to say goodbye, after which it is just closed.
const FAREWELL: Duration = Duration::from_millis(100);

/// A connection that says goodbye when nobody needs it any more.
pub(crate) struct Session {
    conn: Option<Conn>,
    pub(crate) short_way: ShortWay,
}

impl Session {
    pub(crate) fn new(conn: Conn) -> Self {
        Self {
            conn: Some(conn),
            short_way: ShortWay::Closed,
        }
    }

    pub(crate) fn conn(&mut self) -> &mut Conn {
        self.both().0
    }

    pub(crate) fn both(&mut self) -> (&mut Conn, &ShortWay) {
        let conn = self
            .conn
            .as_mut()
            .expect("only its end takes a session's connection");
        (conn, &self.short_way)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.conn.take().into_iter().for_each(farewell);
    }
}

/// Closes a connection in bounded time. Left to itself, the driver would wait for whatever was asked last.
pub(crate) fn farewell(conn: Conn) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { drop(tokio::time::timeout(FAREWELL, conn.disconnect()).await) });
    }
}
