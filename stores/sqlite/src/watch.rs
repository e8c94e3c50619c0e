//! Being woken when a lease changes.

use crate::database::Database;
use crate::files::Files;
use crate::glances;
use crate::patience::patiently;
use crate::reactor;
use crate::seat::{Connected, Seat};
use crate::trouble::Trouble;
use rusqlite::Connection;
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::cell::Cell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Answer, Fault, Glances, Scope, StoreError, Watch, WatchEvent, changes_between};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How often a watch without file notification looks whether anybody wrote.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// How often a watch with file notification looks too: a writer may be killed between its commit and the
/// knock, and whoever edits the table by hand does not knock.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Bytes read from inotify at once: some hundred events, and what is left is read next.
const NOTIFICATIONS_BYTES: usize = 4096;

/// What wakes a watch.
struct Signal {
    /// The kernel, when the wake file was read; `None` where it cannot be asked.
    notifier: Option<AsyncFd<OwnedFd>>,
    /// A connection of its own, since none counts its own commits.
    connection: Arc<Seat<Ear>>,
    /// When to check again. Kept here, so that a dropped `next` does not put it off.
    check_at: Instant,
}

/// A connection that counts the commits of others.
struct Ear {
    connection: Connection,
    /// Their count at the last check; `None` before the first one.
    commits: Cell<Option<i64>>,
}

impl Ear {
    fn open(database: &Database) -> Result<(Self, Files), Trouble> {
        let (connection, files) = database.connect_once()?;
        let commits = Cell::new(None);
        Ok((Self { connection, commits }, files))
    }

    /// Whether others have committed since the last check. After a first one there is no telling.
    fn listen(&self) -> Result<Option<Heard>, Trouble> {
        // A number that changes when any other connection has committed.
        let now = self
            .connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?;
        Ok(match self.commits.replace(Some(now)) {
            None => Some(Heard::Interruption),
            Some(before) if before != now => Some(Heard::Change),
            Some(_) => None,
        })
    }
}

impl Connected for Ear {
    fn leave(&self) {
        self.connection.leave();
    }
}

/// What a signal said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// Something may have changed.
    Change,
    /// Changes may have gone unheard.
    Interruption,
}

/// A running watch of one handle.
pub(crate) struct SqliteWatch {
    database: Arc<Database>,
    scope: Scope,
    signal: Signal,
    known: Glances,
    /// Found and not yet told.
    events: VecDeque<WatchEvent>,
    /// Whether a signal came after the last look. Kept here, so that a dropped `next` loses nothing.
    look_due: bool,
}

impl SqliteWatch {
    /// Listens first and looks then: what happens in between is seen twice rather than never.
    pub(crate) async fn start(database: Arc<Database>, scope: Scope) -> Result<Self, StoreError> {
        let signal = Signal::start(&database).await?;
        let mut watch = Self {
            known: Glances::new(),
            events: VecDeque::new(),
            look_due: false,
            database,
            scope,
            signal,
        };
        watch.known = watch.look().await?;
        Ok(watch)
    }

    async fn look(&self) -> Result<Glances, StoreError> {
        let (database, scope) = (&*self.database, &self.scope);
        patiently(
            &database.jitter,
            || "the watch".to_owned(),
            &database.shown,
            || glances::look(database, scope),
        )
        .await
    }

    async fn advance(&mut self) -> Result<WatchEvent, StoreError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if self.look_due {
                let now = self.look().await?;
                self.events.extend(changes_between(&self.known, &now));
                self.known = now;
                self.look_due = false;
                continue;
            }
            let heard = self.signal.next(&self.database).await?;
            self.look_due = true;
            if heard == Heard::Interruption {
                self.events.push_back(WatchEvent::Gap);
            }
        }
    }
}

impl Watch for SqliteWatch {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(self.advance())
    }
}

fn notifier(database: &Database) -> Result<AsyncFd<OwnedFd>, Errno> {
    let notifier = database.notifier()?;
    listen(&notifier, database)?;
    reactor::register(notifier)
}

fn listen(notifier: &OwnedFd, database: &Database) -> Result<(), Errno> {
    let path = database.wake.path();
    // Not every opening: who makes the file opens it, too, and that is no news.
    let flags = WatchFlags::ACCESS | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    let listening = match inotify::add_watch(notifier, path, flags) {
        Err(Errno::NOENT) => {
            database.wake.create()?;
            inotify::add_watch(notifier, path, flags)
        }
        listening => listening,
    };
    listening.map(drop)
}

impl Signal {
    async fn start(database: &Database) -> Result<Self, StoreError> {
        // Used up, forbidden, or the wake file cannot be made: polling needs none of it.
        let notifier = notifier(database).ok();
        let connected = patiently(
            &database.jitter,
            || "the watch".to_owned(),
            &database.shown,
            || {
                let (ear, files) = Ear::open(database)?;
                ear.listen()?;
                Ok((ear, files))
            },
        );
        let connection = Seat::new(database.paths().clone(), connected.await?);
        Ok(Self {
            notifier,
            connection,
            check_at: Instant::now(),
        })
    }

    /// The next signal. Dropping it loses none: what was not read is still there.
    async fn next(&mut self, database: &Database) -> Result<Heard, StoreError> {
        loop {
            let check_every = match &self.notifier {
                Some(notifier) => {
                    if let Ok(ready) = timeout_at(self.check_at, notifier.readable()).await {
                        let mut ready = ready.map_err(|error| over(database, &error))?;
                        match drain(notifier.get_ref(), database) {
                            Ok(Some(heard)) => return Ok(heard),
                            Ok(None) => ready.clear_ready(),
                            Err(error) => return Err(over(database, &error.into())),
                        }
                        continue;
                    }
                    CHECK_EVERY
                }
                None => {
                    sleep_until(self.check_at).await;
                    POLL_EVERY
                }
            };
            self.check_at = Instant::now() + check_every;
            let ear = self.connection.take(|| Ear::open(database));
            match ear.and_then(|ear| ear.listen()) {
                Ok(Some(heard)) => {
                    if let (Heard::Interruption, Some(notifier)) = (heard, &self.notifier) {
                        // The directory itself may be another, and the wake file with it, of which that one says nothing.
                        listen(notifier.get_ref(), database)
                            .map_err(|error| over(database, &error.into()))?;
                    }
                    return Ok(heard);
                }
                Ok(None) => {}
                Err(trouble) if trouble.is_locked() => {}
                Err(trouble) => return Err(trouble.into_error("the watch", &database.shown)),
            }
        }
    }
}

/// Reads what is there; `None` if nothing is. A wake file that was deleted or moved is made anew and
/// listened to again.
fn drain(notifier: &OwnedFd, database: &Database) -> Result<Option<Heard>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); NOTIFICATIONS_BYTES];
    let mut reader = inotify::Reader::new(notifier, &mut buffer);
    let mut heard = None;
    let mut gone = false;
    loop {
        match reader.next() {
            Ok(event) => {
                let left = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED;
                gone |= event.events().intersects(left);
                heard = heard.or(Some(Heard::Change));
                if event.events().intersects(left | ReadFlags::QUEUE_OVERFLOW) {
                    heard = Some(Heard::Interruption);
                }
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error),
        }
    }
    if gone {
        listen(notifier, database)?;
    }
    Ok(heard)
}

fn over(database: &Database, error: &std::io::Error) -> StoreError {
    StoreError::not_applied(
        Fault::Unreachable,
        format!(
            "the watch of {} has ended: {error}; start a new one",
            database.wake.path().display()
        ),
    )
}
