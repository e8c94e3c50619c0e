//! Watching by `LISTEN`: one connection of the store's, shared by all its watches.

use crate::audience::{Audience, Listening, Missed};
use crate::dial::{Dial, Dialled, about};
use crate::fault::{Deed, store_error, timed_out};
use crate::lane::{Live, UnderWay};
use crate::schema::{channel, quoted};
use crate::site::{Site, Typed};
use std::collections::hash_map::RandomState;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tenure_core::{Answer, Fault, Scope, StoreError, Watch, WatchEvent, WatchSource};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, SimpleQueryMessage};

/// Events that may wait for a slow reader. When it is full, the reader is told of a gap instead.
const EVENTS_WAITING_MAX: usize = 256;

/// How often the silent connection is asked whether it is still there, and how long it may take to say so.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long it may take to say so to a watch that is about to begin, or to be proven: there must be time left
/// for another connection.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// How long connecting waits for a second notification of its own, which comes where the first was not heard
/// by chance. Longer, as nothing but time tells that it does not come.
const SECOND_PROOF_TIME_MAX: Duration = Duration::from_secs(3);

/// How much of the time for connecting the second one leaves for what comes after it, and what it may take at
/// least: a machine that stalls must not cost a store its watch.
const AFTER_SECOND_PROOF: Duration = Duration::from_secs(1);
const SECOND_PROOF_TIME_MIN: Duration = Duration::from_millis(500);

/// How much of it taking the `LISTEN` back leaves.
const AFTER_TAKING_BACK: Duration = Duration::from_millis(200);

/// How often a pooler is asked for the session in which it has left a `LISTEN`. It gives the one that was
/// used last, mostly.
const UNLISTENS_MAX: usize = 10;

/// How long connecting waits for its own notification, from when the connection that listens has answered
/// what was asked after it: the server tells it before. Behind a transaction-mode pooler it never comes.
const PROOF_TIME_MAX: Duration = Duration::from_millis(1_500);

type Event = Result<WatchEvent, StoreError>;

/// The connection that listens. It is not healed: its end ends its watches, and the next watch makes another.
pub(crate) struct Listener {
    live: Arc<Live>,
    audience: Arc<Audience>,
    heartbeat: AbortHandle,
    /// The process that has run the `LISTEN`.
    process: Option<String>,
}

impl Listener {
    /// Connects and listens: every change after this is told.
    ///
    /// # Errors
    /// Not applied.
    async fn open(dial: &Arc<Dial>) -> Result<Arc<Self>, StoreError> {
        let Dialled {
            client,
            mut connection,
            host,
            told: _,
        } = dial.connect().await?;
        let audience = Arc::new(Audience::new(&dial.place));
        let told = Arc::clone(&audience);
        let driver = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message {
                    told.tell(notification.payload());
                }
            }
            told.close();
        });
        let live = Arc::new(Live::new(client, None, None, driver.abort_handle(), dial, host));
        let mut asking = UnderWay::begin(Arc::clone(&live)).await;
        let listen = run_by("LISTEN", asking.client(), &dial.url.schema);
        let listening = tokio::time::timeout(dial.time_max, listen).await;
        let late = |_| timed_out(Deed::Read, "", &dial.place, dial.time_max);
        let listening = listening.map_err(late)?;
        asking.answered();
        let process = listening.map_err(|error| store_error(&error, Deed::Read, "", &dial.place))?;
        let heartbeat = tokio::spawn(beat(Arc::clone(&live), Arc::clone(&audience))).abort_handle();
        Ok(Arc::new(Self {
            live,
            audience,
            heartbeat,
            process,
        }))
    }

    /// Takes the `LISTEN` back, which behind a pooler is left in a session of others: they would hear what is
    /// not theirs, and one of them that stays in a transaction would keep the queue of notifications from
    /// being cut.
    async fn take_back(&self, schema: &str, until: Instant) {
        let mut asking = UnderWay::begin(Arc::clone(&self.live)).await;
        let taking_back = async {
            for _session in 0..UNLISTENS_MAX {
                match run_by("UNLISTEN", asking.client(), schema).await {
                    Ok(process) if process != self.process => {}
                    Ok(_) | Err(_) => return,
                }
            }
        };
        // What it does not come to in this time, the pooler does when it closes the session.
        let allowed = left(until, AFTER_TAKING_BACK).min(ANSWER_TIME_MAX);
        if tokio::time::timeout(allowed, taking_back).await.is_ok() {
            asking.answered();
        }
    }

    /// Whether a further watch may begin on it.
    fn is_usable(&self) -> bool {
        self.audience.is_open() && self.live.is_usable() && !self.live.is_left_behind()
    }

    /// Has it answer. If it does not, or if nobody waits for the answer, the next watch has another; those on
    /// this one are told by the heartbeat.
    ///
    /// # Errors
    /// Not applied: the connection has ended, or is silent.
    async fn answer(&self, place: &str) -> Result<(), StoreError> {
        let mut asking = UnderWay::begin(Arc::clone(&self.live)).await;
        let silent = || timed_out(Deed::Read, "the watch", place, ANSWER_TIME_MAX);
        if !asking.is_usable() && !asking.client().is_closed() {
            // Whoever was before it has found it silent; each would wait as long anew.
            asking.answered();
            return Err(silent());
        }
        let asked = tokio::time::timeout(ANSWER_TIME_MAX, asking.client().batch_execute(""));
        match asked.await.map_err(|_late| silent())? {
            Ok(()) => asking.answered(),
            Err(error) => {
                asking.ended();
                return Err(store_error(&error, Deed::Read, "the watch", place));
            }
        }
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.heartbeat.abort();
    }
}

/// Ends the watches on a connection that is silent, or whose host is an old primary by now: what happens
/// where the requests go is not told there, however well it answers.
async fn beat(live: Arc<Live>, audience: Arc<Audience>) {
    while audience.is_open() {
        tokio::time::sleep(HEARTBEAT).await;
        if live.is_left_behind() || !answers(&live).await {
            audience.close();
        }
    }
}

/// Runs this on the channel, and tells by which process: both are one transaction, and so of one session.
async fn run_by(verb: &str, client: &Client, schema: &str) -> Result<Option<String>, tokio_postgres::Error> {
    let statements = format!("{verb} {}; SELECT pg_backend_pid()", quoted(&channel(schema)));
    let answers = client.simple_query(&statements).await?;
    Ok(answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

/// What is left until then, without what comes after.
fn left(until: Instant, after: Duration) -> Duration {
    let left = until.saturating_duration_since(Instant::now());
    left.saturating_sub(after)
}

async fn answers(live: &Live) -> bool {
    let asked = tokio::time::timeout(HEARTBEAT, live.client.batch_execute(""));
    matches!(asked.await, Ok(Ok(())))
}

impl Site {
    /// Finds out whether notifications arrive, by one of its own: sent on one connection, waited for on
    /// another. By the end of the time for connecting, where the server is slow: whoever has found no watch
    /// by then has none.
    ///
    /// # Errors
    /// If the server cannot be asked. That nothing arrives is no error: then watching is absent.
    pub(crate) async fn prove_watch(&mut self, until: Instant) -> Result<(), StoreError> {
        let (mut listener, mut arrived) = self.send_proof().await?;
        // What keeps that connection busy, or the machine from running, keeps the proof too: the watch would
        // be absent for the store's whole life.
        if listener.answer(&self.place).await.is_err() {
            (listener, arrived) = self.send_proof().await?;
            listener.answer(&self.place).await?;
        }
        let arrives = tokio::time::timeout(PROOF_TIME_MAX, arrived.notified()).await;
        if arrives.is_ok() && self.arrives_unasked(until).await? {
            self.watch = WatchSource::Push;
        } else {
            listener.take_back(&self.dial.url.schema, until).await;
            self.listener.forget();
            tracing::info!(
                place = %self.place,
                "notifications do not arrive, as behind a transaction-mode pooler: candidates wait for the remaining time; \
                 add listen=off to the URL to connect faster, or let Tenure go round the pooler"
            );
        }
        Ok(())
    }

    /// Whether a notification arrives while nothing is asked on the connection that listens. A pooler may
    /// have given it the very session that is notified, to answer with: it would have heard the first one,
    /// and hear no other.
    async fn arrives_unasked(&self, until: Instant) -> Result<bool, StoreError> {
        let (_listener, arrived) = self.send_proof().await?;
        let allowed = left(until, AFTER_SECOND_PROOF).clamp(SECOND_PROOF_TIME_MIN, SECOND_PROOF_TIME_MAX);
        let arrives = tokio::time::timeout(allowed, arrived.notified()).await;
        Ok(arrives.is_ok())
    }

    /// Sends a notification of its own to the connection that listens, which tells when it arrives.
    async fn send_proof(&self) -> Result<(Arc<Listener>, Arc<Notify>), StoreError> {
        let listener = self.listen().await?;
        let proof = format!("proof {:016x}", RandomState::new().build_hasher().finish());
        let arrived = listener.audience.expect_proof(&proof);
        let channel = channel(&self.dial.url.schema);
        let parameters: [Typed<'_>; 2] = [(&channel, Type::TEXT), (&proof, Type::TEXT)];
        self.ask(Deed::Read, "the watch", "SELECT pg_notify($1, $2)", &parameters)
            .await?;
        Ok((listener, arrived))
    }

    /// Starts a watch; answers when it is in place.
    pub(crate) async fn open_watch(&self, scope: Scope) -> Result<ListenWatch, StoreError> {
        if self.watch != WatchSource::Push {
            let message = format!(
                "{} cannot be watched: notifications do not arrive through a transaction-mode pooler, or listen=off; wait by \
                 the remaining time, or give a URL that goes round the pooler",
                self.place
            );
            return Err(StoreError::not_applied(Fault::Unsupported, message));
        }
        let opening = async {
            let mut listener = self.listen().await?;
            if listener.answer(&self.place).await.is_err() {
                listener = self.listen().await?;
            }
            self.admit(scope, listener)
        };
        let late = |_| Err(timed_out(Deed::Read, "the watch", &self.place, self.time_max));
        tokio::time::timeout(self.time_max, opening)
            .await
            .unwrap_or_else(late)
    }

    /// The connection that listens, or a new one where there is none that works.
    async fn listen(&self) -> Result<Arc<Listener>, StoreError> {
        let open = || {
            let dial = Arc::clone(&self.dial);
            async move { Listener::open(&dial).await }
        };
        let listener = self.listener.get(|listener| listener.is_usable(), open);
        listener.await.map_err(about("the watch"))
    }

    fn admit(&self, scope: Scope, listener: Arc<Listener>) -> Result<ListenWatch, StoreError> {
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let missed = Arc::new(Missed::default());
        listener.audience.admit(Listening {
            scope,
            sender,
            missed: Arc::clone(&missed),
        })?;
        Ok(ListenWatch {
            events,
            missed,
            place: self.place.clone(),
            _listener: listener,
        })
    }
}

/// One watch.
pub(crate) struct ListenWatch {
    events: mpsc::Receiver<WatchEvent>,
    missed: Arc<Missed>,
    place: String,
    _listener: Arc<Listener>,
}

impl Watch for ListenWatch {
    fn next(&mut self) -> Answer<'_, Event> {
        Box::pin(async move {
            next(&mut self.events, &self.missed).await.ok_or_else(|| {
                let message = format!(
                    "the watch at {} is over; start a new one, then look again",
                    self.place
                );
                StoreError::not_applied(Fault::Unreachable, message)
            })
        })
    }
}

/// The next event, or the gap where one found the queue full; `None` when there will be no other.
async fn next(events: &mut mpsc::Receiver<WatchEvent>, missed: &Missed) -> Option<WatchEvent> {
    loop {
        if events.is_empty() && missed.is_so.swap(false, Ordering::SeqCst) {
            return Some(WatchEvent::Gap);
        }
        tokio::select! {
            biased;
            event = events.recv() => return event,
            () = missed.noted.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Missed, PROOF_TIME_MAX, next};
    use crate::connect::site;
    use crate::url::StoreUrl;
    use std::collections::hash_map::RandomState;
    use std::hash::{BuildHasher, Hasher};
    use std::time::{Duration, Instant};
    use tenure_core::{Fault, WatchEvent, WatchSource};
    use tenure_testkit::Postgres;
    use tokio::sync::mpsc;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Its own notification comes when the connection that listens is idle again.
    #[tokio::test]
    async fn watch_of_postgres_whose_proof_is_late_is_no_less_a_watch() {
        let uri = Postgres::shared().await.uri();
        let url = StoreUrl::parse(&uri).unwrap_or_else(|error| panic!("{error}"));
        let mut site = site(url).unwrap_or_else(|error| panic!("{error}"));
        let listener = site.listen().await.unwrap_or_else(|error| panic!("{error}"));
        let busy = format!("SELECT pg_sleep({})", 2.0 * PROOF_TIME_MAX.as_secs_f64());
        let (slept, proven) = tokio::join!(
            listener.live.client.batch_execute(&busy),
            site.prove_watch(Instant::now() + PATIENCE)
        );
        slept.expect("it only sleeps");
        assert_eq!(proven, Ok(()));
        assert_eq!(site.watch, WatchSource::Push);
    }

    /// As by an administrator, or a pooler that restarts: another is made at once.
    #[tokio::test]
    async fn watch_of_postgres_is_proven_by_another_connection_where_the_first_ends() {
        let application = format!("proof-{:016x}", RandomState::new().build_hasher().finish());
        let uri = Postgres::shared().await.uri();
        let url = StoreUrl::parse(&format!("{uri}?application_name={application}"));
        let mut site = site(url.unwrap_or_else(|error| panic!("{error}")));
        let site = site.as_mut().unwrap_or_else(|error| panic!("{error}"));
        let first = site.listen().await.unwrap_or_else(|error| panic!("{error}"));
        let looker = Postgres::client(&uri).await.expect("a client");
        let is_sent = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'SELECT pg_notify(%'";
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'SELECT pg_sleep(%'";
        let busy = first.live.client.batch_execute("SELECT pg_sleep(600)");
        let (ended, proven, ()) = tokio::join!(busy, site.prove_watch(Instant::now() + PATIENCE), async {
            while looker
                .query_one(is_sent, &[&application])
                .await
                .expect("told")
                .get::<_, i64>(0)
                == 0
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let ended = looker.query(end, &[&application]).await.expect("told");
            assert_eq!(ended.len(), 1);
        });
        assert!(ended.is_err(), "it is ended");
        assert_eq!(proven, Ok(()));
        assert_eq!(site.watch, WatchSource::Push);
    }

    /// What the server has said of it, or the driver, and not that nobody answered.
    #[tokio::test]
    async fn connection_that_listens_and_has_ended_is_not_told_as_silent() {
        let uri = Postgres::shared().await.uri();
        let url = StoreUrl::parse(&uri).unwrap_or_else(|error| panic!("{error}"));
        let site = site(url).unwrap_or_else(|error| panic!("{error}"));
        let listener = site.listen().await.unwrap_or_else(|error| panic!("{error}"));
        let end = "SELECT pg_terminate_backend(pg_backend_pid())";
        listener
            .live
            .client
            .batch_execute(end)
            .await
            .expect_err("it ends");
        for _again in 0..2 {
            let error = listener.answer(&site.place).await.expect_err("it has ended");
            assert_eq!(error.fault, Fault::Unreachable, "{error}");
        }
    }

    #[tokio::test]
    async fn gap_that_is_noted_when_the_reader_waits_already_wakes_it() {
        let (_sender, mut events) = mpsc::channel(1);
        let missed = Missed::default();
        let noting = async {
            // The reader found nothing, and waits.
            tokio::task::yield_now().await;
            missed.note();
        };
        let read = tokio::time::timeout(Duration::from_secs(30), next(&mut events, &missed));
        let (read, ()) = tokio::join!(read, noting);
        assert_eq!(read.expect("it is woken"), Some(WatchEvent::Gap));
    }
}
