//! Where a store's records live, and the bounds of every request to it.

use crate::acquire::Unannounced;
use crate::dial::Dial;
use crate::fault::{Deed, ends_connection, store_error, timed_out};
use crate::kept::{Often, is_outdated, prepare};
use crate::lane::{Lane, Live, UnderWay};
use crate::one_cluster::{bound_to, elsewhere};
use crate::schema::quoted;
use crate::shared::Shared;
use crate::watch::Listener;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Certainty, Durability, Fault, StoreError, WatchSource};
use tenure_remote::ClaimTurns;
pub(crate) use tenure_remote::lease_subject as subject;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// Connections for everything but renewals, and as many for claims. The second and later ones are made when
/// the others are busy: on one, an acquisition that waits for a row or for the disk would hold up those
/// behind it.
const LANES: usize = 4;

/// The lanes of one store, and what is known of its server.
pub(crate) struct Site {
    pub(crate) dial: Arc<Dial>,
    /// Its own, so that nothing else can make a renewal wait.
    pub(crate) renewals: Lane,
    pub(crate) requests: [Lane; LANES],
    /// For what raises marks: a claim waits for transactions of users, for seconds.
    pub(crate) claims: [Lane; LANES],
    /// One for each of those.
    pub(crate) claim_turns: ClaimTurns,
    pub(crate) listener: Shared<Arc<Listener>>,
    pub(crate) unannounced: Unannounced,
    pub(crate) watch: WatchSource,
    pub(crate) durability: Durability,
    /// The role or the database forbids writes by a setting: no fail-over will change it.
    pub(crate) read_only: bool,
    /// The set-up has the functions that decide of one lease and answer in one value, and the role may call
    /// them.
    pub(crate) quick: bool,
    /// Host, database and schema, for people.
    pub(crate) place: String,
    /// The store's own bound on one request, beside the engine's.
    pub(crate) time_max: Duration,
}

/// A parameter of a statement, with its type: typed, a statement needs no round trip of its own to be
/// prepared, and no name that a pooler could confuse.
pub(crate) type Typed<'a> = (&'a (dyn ToSql + Sync), Type);

impl Site {
    pub(crate) fn new(dial: Dial, time_max: Duration) -> Self {
        Self {
            place: dial.place.clone(),
            dial: Arc::new(dial),
            renewals: Lane::default(),
            requests: Default::default(),
            claims: Default::default(),
            claim_turns: ClaimTurns::new(LANES),
            listener: Shared::default(),
            unannounced: Unannounced::default(),
            watch: WatchSource::Absent,
            durability: Durability::Safe,
            read_only: false,
            quick: false,
            time_max,
        }
    }

    /// The schema, as a statement writes it.
    pub(crate) fn schema(&self) -> String {
        quoted(&self.dial.url.schema)
    }

    /// One statement on any lane.
    pub(crate) async fn ask(
        &self,
        deed: Deed,
        subject: &str,
        statement: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.ask_on(least_busy(&self.requests), deed, subject, statement, parameters)
            .await
    }

    /// A write of one value on any lane, which is asked often: prepared where that is sound. The statement
    /// answers with the process that has run it beside the value.
    pub(crate) async fn ask_often(
        &self,
        often: Often,
        subject: &str,
        statement: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let lane = least_busy(&self.requests);
        self.ask_in(lane, Some(often), Deed::Write, subject, statement, parameters)
            .await
    }

    /// One statement on this lane: one round trip, answered within [`Site::time_max`].
    pub(crate) async fn ask_on(
        &self,
        lane: &Lane,
        deed: Deed,
        subject: &str,
        statement: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.ask_in(lane, None, deed, subject, statement, parameters)
            .await
    }

    async fn ask_in(
        &self,
        lane: &Lane,
        often: Option<Often>,
        deed: Deed,
        subject: &str,
        statement: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let mut under_way: Option<UnderWay> = None;
        let asking = async {
            let live = under_way.insert(lane.enter(&self.dial, subject).await?);
            let answer = match (live.live().bound_to, often) {
                (Some(cluster), _) => {
                    let bound = bound_to(cluster, statement);
                    live.client().query_typed(&bound, parameters).await
                }
                (None, Some(often)) => self.ask_kept(live.live(), often, statement, parameters).await,
                (None, None) => live.client().query_typed(statement, parameters).await,
            };
            let elsewhere = answer.as_ref().err().and_then(elsewhere);
            // Whoever connects anew asks first who is there.
            if elsewhere.is_some() || answer.as_ref().is_err_and(ends_connection) {
                live.ended();
            } else {
                live.answered();
            }
            if let Some(Err(why)) = elsewhere.map(|theirs| self.dial.cluster.check(&self.place, Some(theirs)))
            {
                let (fault, certainty) = (Fault::AnotherStore, Certainty::NotApplied);
                return Err(deed.error(fault, certainty, subject, &self.place, why));
            }
            answer.map_err(|error| self.refused(&error, deed, subject))
        };
        match tokio::time::timeout(self.time_max, asking).await {
            Ok(answer) => answer,
            // Still connecting: then nothing was sent.
            Err(_late) if under_way.is_none() => {
                Err(timed_out(Deed::Read, subject, &self.place, self.time_max))
            }
            Err(_late) => Err(timed_out(deed, subject, &self.place, self.time_max)),
        }
    }

    /// By the statement that the connection keeps prepared, if it does. Else as it stands, and if the process
    /// that has run it is the one that greeted, it is prepared for the next.
    async fn ask_kept(
        &self,
        live: &Arc<Live>,
        often: Often,
        statement: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        if let Some(prepared) = live.kept.get(often) {
            let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
            match live.client.query(&prepared, &values).await {
                Err(error) if is_outdated(&error) => live.kept.forget(often),
                answer => return answer,
            }
        }
        let rows = live.client.query_typed(statement, parameters).await?;
        let run_by = rows.first().and_then(|row| row.try_get::<_, i32>(1).ok());
        if run_by.is_some() && run_by == live.backend {
            let types = parameters.iter().map(|(_, of)| of.clone()).collect();
            prepare(live, often, statement, types, self.time_max);
        }
        Ok(rows)
    }

    /// Makes all connections anew.
    pub(crate) fn leave(&self) {
        self.renewals.close();
        self.requests.iter().chain(&self.claims).for_each(Lane::close);
    }

    /// For an answer that is none to what was asked. What follows on that connection may be none either: all
    /// are made anew.
    pub(crate) fn crossed(&self, subject: &str) -> StoreError {
        self.leave();
        let message = format!(
            "{subject} at {}: what came is the answer to another request, so what became of this one is not known; a pooler has \
             confused its clients (PgBouncer does after one that left with several requests under way); give Tenure a user of \
             its own there, or connect round the pooler",
            self.place
        );
        StoreError::unknown(Fault::Internal, message)
    }

    /// Statements without parameters and without an answer, as for a change of a table.
    pub(crate) async fn run(&self, subject: &str, statements: &str) -> Result<(), StoreError> {
        let mut under_way: Option<UnderWay> = None;
        let running = async {
            let live = under_way.insert(least_busy(&self.requests).enter(&self.dial, subject).await?);
            let answer = live.client().batch_execute(statements).await;
            // A refused one may leave its transaction open: then the connection is of no use.
            if answer.is_ok() {
                live.answered();
            } else {
                live.ended();
            }
            answer.map_err(|error| self.refused(&error, Deed::Write, subject))
        };
        let late = |_| Err(timed_out(Deed::Write, subject, &self.place, self.time_max));
        tokio::time::timeout(self.time_max, running)
            .await
            .unwrap_or_else(late)
    }

    /// What the server refused, and why.
    pub(crate) fn refused(&self, error: &tokio_postgres::Error, deed: Deed, subject: &str) -> StoreError {
        let refused = store_error(error, deed, subject, &self.place);
        let read_only = error.code() == Some(&tokio_postgres::error::SqlState::READ_ONLY_SQL_TRANSACTION);
        if read_only && self.read_only {
            let message = format!(
                "{subject} at {}: the role or the database is set to default_transaction_read_only; take it back with \
                 ALTER ROLE or ALTER DATABASE … RESET default_transaction_read_only",
                self.place
            );
            return StoreError::not_applied(Fault::ReadOnly, message);
        }
        refused
    }
}

/// The lane with the fewest requests; one that is open already before one that is not.
pub(crate) fn least_busy(lanes: &[Lane; LANES]) -> &Lane {
    let mut best = &lanes[0];
    for lane in &lanes[1..] {
        if best.load() == 0 {
            break;
        }
        if lane.load() < best.load() {
            best = lane;
            if !lane.is_open() {
                break;
            }
        }
    }
    best
}
