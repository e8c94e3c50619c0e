//! Where requests go: one server, by a bounded number of connections.

use crate::dial::Dial;
use crate::fault::{ends_connection, store_error, takes_no_writes, timed_out};
use crate::lane::{Lanes, Sessions};
use crate::session::Session;
use crate::short::Short;
use crate::unsettled::Unsettled;
use crate::watch::WATCHES_MAX;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Row};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Durability, Fault, StoreError, WatchSource};
pub(crate) use tenure_remote::lease_subject as subject;
use tenure_remote::{ClaimTurns, Deed, WatchPlaces};

/// Connections for everything but renewals, and as many for claims: one that waits for a row or for the disk
/// holds up nothing but itself.
const REQUEST_LANES: usize = 6;

/// Connections for renewals alone, so that nothing else can make one wait; two, so that a batch that waits
/// for a row does not hold up the next.
const RENEWAL_LANES: usize = 2;

/// A refusal of `sql_safe_updates`, before anything was changed: MariaDB takes a batch, which finds rows by a
/// list, for a change without a key. Few servers have it on for everybody, so it costs no round trip of each
/// new session's.
const WITHOUT_A_KEY: u16 = 1175;

const ALLOW_CHANGES_WITHOUT_A_KEY: &str = "SET SESSION sql_safe_updates = OFF";

const REFUSE_CHANGES_WITHOUT_A_KEY: &str = "SET SESSION sql_safe_updates = ON";

/// The connections of one store, and what is known of its server.
pub(crate) struct Site {
    pub(crate) dial: Arc<Dial>,
    pub(crate) renewals: Lanes,
    pub(crate) requests: Lanes,
    /// For what raises marks: a claim waits for transactions of users, for seconds.
    pub(crate) claims: Lanes,
    /// One for each of those.
    pub(crate) claim_turns: ClaimTurns,
    /// Places for watches.
    pub(crate) watches: WatchPlaces,
    pub(crate) durability: Durability,
    pub(crate) unsettled: Unsettled,
    /// Whether the procedure that waits is there, and granted.
    pub(crate) watch: WatchSource,
    /// The store's own bound on one request, beside the engine's.
    pub(crate) time_max: Duration,
}

impl Site {
    pub(crate) fn new(dial: Dial, time_max: Duration) -> Self {
        Self {
            dial: Arc::new(dial),
            renewals: Lanes::new(RENEWAL_LANES, Sessions::Plain),
            requests: Lanes::new(REQUEST_LANES, Sessions::WithShortWay),
            claims: Lanes::new(REQUEST_LANES, Sessions::Plain),
            claim_turns: ClaimTurns::new(REQUEST_LANES),
            watches: WatchPlaces::new(WATCHES_MAX),
            durability: Durability::Safe,
            unsettled: Unsettled::default(),
            watch: WatchSource::Absent,
            time_max,
        }
    }

    /// Host, port and database, for people.
    pub(crate) fn place(&self) -> &str {
        &self.dial.place
    }

    /// One statement on any connection.
    pub(crate) async fn ask(
        &self,
        deed: Deed,
        subject: &str,
        statement: &str,
    ) -> Result<Vec<Row>, StoreError> {
        self.ask_on(&self.requests, deed, subject, statement).await
    }

    /// One statement that changes rows on any connection, and how many it has changed.
    pub(crate) async fn change(&self, subject: &str, statement: &str) -> Result<u64, StoreError> {
        let answer = self
            .answer_on(&self.requests, Deed::Write, subject, None, statement)
            .await?;
        Ok(answer.changed)
    }

    /// A write that has a short way: by that, where it proves what it has done, else by this statement. Both
    /// on one connection, and within the time of one.
    pub(crate) async fn ask_shortly(
        &self,
        subject: &str,
        short: Option<&Short>,
        statement: &str,
    ) -> Result<Answered, StoreError> {
        self.answer_on(&self.requests, Deed::Write, subject, short, statement)
            .await
    }

    /// One statement on these connections: one round trip, answered within [`Site::time_max`].
    pub(crate) async fn ask_on(
        &self,
        lanes: &Lanes,
        deed: Deed,
        subject: &str,
        statement: &str,
    ) -> Result<Vec<Row>, StoreError> {
        Ok(self.answer_on(lanes, deed, subject, None, statement).await?.rows)
    }

    async fn answer_on(
        &self,
        lanes: &Lanes,
        deed: Deed,
        subject: &str,
        short: Option<&Short>,
        statement: &str,
    ) -> Result<Answered, StoreError> {
        let mut sent = false;
        let asking = async {
            let mut under_way = lanes.enter(&self.dial, subject).await?;
            sent = true;
            match answered(under_way.session(), short, statement).await {
                Ok(answer) => {
                    under_way.answered();
                    Ok(answer)
                }
                Err(error) => {
                    if ends_connection(&error) {
                        self.distrust();
                    } else {
                        under_way.answered();
                    }
                    if matches!(&error, Error::Server(answer) if takes_no_writes(answer)) {
                        self.leave_server();
                    }
                    Err(store_error(&error, deed, subject, self.place()))
                }
            }
        };
        match tokio::time::timeout(self.time_max, asking).await {
            Ok(answer) => answer,
            Err(_late) => {
                self.distrust();
                // Still connecting, or waiting for a place: then nothing was sent.
                let deed = if sent { deed } else { Deed::Read };
                Err(timed_out(deed, subject, self.place(), self.time_max))
            }
        }
    }

    /// Has every idle connection be asked before it is used: one was lost, and the others may be as well.
    fn distrust(&self) {
        for lanes in [&self.requests, &self.claims, &self.renewals] {
            lanes.distrust();
        }
    }

    /// Lets go of every idle connection: the name in the URL may lead to another server by now.
    pub(crate) fn leave_server(&self) {
        for lanes in [&self.requests, &self.claims, &self.renewals] {
            lanes.close();
        }
        self.dial.forget();
    }

    pub(crate) fn without_verdict(&self, subject: &str) -> StoreError {
        let message = format!(
            "{subject} at {}: the server answered without a verdict; run `tenure store init`, the procedures may be another \
             version's",
            self.place()
        );
        StoreError::unknown(Fault::Internal, message)
    }

    /// The table of the leases, for messages.
    pub(crate) fn table(&self) -> String {
        format!("{}.tenure_leases", self.dial.url.database)
    }
}

/// What a statement has answered.
pub(crate) struct Answered {
    pub(crate) rows: Vec<Row>,
    /// Rows that it has changed or removed.
    changed: u64,
    /// Whether it was the one of the short way: then it has done what was asked.
    pub(crate) shortly: bool,
}

async fn answered(session: &mut Session, short: Option<&Short>, statement: &str) -> Result<Answered, Error> {
    let (conn, short_way) = session.both();
    if let Some(short) = short
        && let Some(rows) = short_way.done(conn, short).await?
    {
        return Ok(Answered {
            rows,
            changed: conn.affected_rows(),
            shortly: true,
        });
    }
    match to_the_last_word(conn, statement).await {
        Err(Error::Server(refusal)) if refusal.code == WITHOUT_A_KEY => {
            conn.query_drop(ALLOW_CHANGES_WITHOUT_A_KEY).await?;
            let answer = to_the_last_word(conn, statement).await;
            // Also after a refusal: behind a pooler another program has the session next.
            let set_back = conn.query_drop(REFUSE_CHANGES_WITHOUT_A_KEY).await;
            answer.and_then(|answered| set_back.map(|()| answered))
        }
        answer => answer,
    }
}

/// An error of the commit comes after the rows.
async fn to_the_last_word(conn: &mut Conn, statement: &str) -> Result<Answered, Error> {
    // Of all that it answers: several statements may have been sent as one.
    let mut answer = conn.query_iter(statement).await?;
    let mut rows = Vec::new();
    while !answer.is_empty() {
        rows.extend(answer.collect::<Row>().await?);
    }
    answer.drop_result().await?;
    Ok(Answered {
        rows,
        changed: conn.affected_rows(),
        shortly: false,
    })
}

#[cfg(test)]
mod tests {
    use super::answered;
    use crate::connect::site;
    use crate::url::StoreUrl;
    use mysql_async::prelude::Queryable as _;
    use tenure_testkit::Mariadb;

    /// Behind a pooler the session is another program's next, which relies on it as on a net.
    #[tokio::test]
    async fn session_refuses_changes_without_a_key_as_before_when_a_request_was_let_make_some() {
        let server = Mariadb::shared().await;
        let url = StoreUrl::parse(&server.uri_of("mysql")).unwrap_or_else(|error| panic!("{error}"));
        let site = site(url);
        let entered = site.renewals.enter(&site.dial, "the session").await;
        let mut under_way = entered.unwrap_or_else(|error| panic!("{error}"));
        for statement in [
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES'",
            "SET SESSION sql_safe_updates = ON",
            "CREATE TEMPORARY TABLE careful (number INT)",
            "INSERT INTO careful VALUES (1)",
        ] {
            let asked = under_way.session().conn().query_drop(statement).await;
            asked.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        for (statement, changed) in [
            ("UPDATE careful SET number = 2", Some(1)),
            ("UPDATE careful SET number = 'none'", None),
        ] {
            let answer = answered(under_way.session(), None, statement).await;
            assert_eq!(answer.ok().map(|answer| answer.changed), changed, "{statement}");
            let asked = under_way
                .session()
                .conn()
                .query_first("SELECT @@SESSION.sql_safe_updates");
            assert_eq!(asked.await.ok().flatten(), Some(1), "{statement}");
        }
    }
}
