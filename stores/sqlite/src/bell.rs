//! What wakes the watches of one handle: one inotify instance, of which a user has few, and one connection
//! for all of them.

use crate::database::Database;
use crate::ear::{Ear, Heard};
use crate::notifier;
use crate::patience::patiently;
use crate::reactor;
use crate::seat::Seat;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::future::pending;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{Fault, Interest, StoreError};
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How often the watches look without file notification whether anybody wrote.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// How often they look with file notification, too: a writer may be killed between its commit and the
/// knock, and whoever edits the table by hand does not knock.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Rings for all watches of a handle. None of them serves it: each hears the kernel by itself, and whoever is
/// the first to read what it says, or to look at the commits, tells the others.
pub(crate) struct Bell {
    /// The kernel, when there is news by the wake file; `None` where it cannot be asked.
    notifier: Option<OwnedFd>,
    /// What any of the watches waits for.
    listened: Mutex<Interest>,
    ear: Arc<Seat<Ear>>,
    /// When somebody is to look at the commits again.
    check_at: Mutex<Instant>,
    /// When the kernel is to be asked again, where it could not be.
    ask_again_at: Mutex<Instant>,
    rung: watch::Sender<Rung>,
}

/// How often it rang.
#[derive(Clone, Default)]
struct Rung {
    begins: u64,
    changes: u64,
    interruptions: u64,
    /// Why it rings no more.
    over: Option<StoreError>,
}

/// Where the bell of a handle hangs from its first watch on: who waits for one lease after another has a
/// watch each time, and to take the bell down and hang it up again costs more than a hand-over.
pub(crate) type Hook = Mutex<Option<Arc<Bell>>>;

/// One watch that listens.
pub(crate) struct Listener {
    bell: Arc<Bell>,
    /// The notifier, in the poller of the watch's own runtime.
    ready: Option<AsyncFd<OwnedFd>>,
    news: watch::Receiver<Rung>,
    heard: Rung,
    interest: Interest,
}

impl Bell {
    /// The bell of this handle, hung up for the first watch.
    async fn of(database: &Database, interest: Interest) -> Result<Arc<Self>, StoreError> {
        let hung = |hook: &Option<Arc<Self>>| hook.clone().filter(|bell| !bell.is_over());
        if let Some(bell) = hung(&locked(&database.bell)) {
            return Ok(bell);
        }
        let opened = patiently(
            &database.patience,
            || "the watch".to_owned(),
            &database.shown,
            || {
                let (ear, files) = Ear::open(database)?;
                ear.listen()?;
                Ok((ear, files))
            },
        );
        let ear = Seat::new(database.paths().clone(), opened.await?);
        let mut hook = locked(&database.bell);
        // Another watch may have been faster, and have the last inotify instance.
        if let Some(bell) = hung(&hook) {
            return Ok(bell);
        }
        let bell = Arc::new(Self {
            // Used up, forbidden, or the wake file cannot be made: polling needs none of it.
            notifier: notifier::open(database, interest).ok(),
            listened: Mutex::new(interest),
            ear,
            check_at: Mutex::new(Instant::now()),
            ask_again_at: Mutex::new(Instant::now() + CHECK_EVERY),
            rung: watch::Sender::default(),
        });
        *hook = Some(Arc::clone(&bell));
        Ok(bell)
    }

    fn is_over(&self) -> bool {
        self.rung.borrow().over.is_some()
    }

    fn ring(&self, heard: Heard) {
        self.rung.send_modify(|rung| match heard {
            Heard::Begin => rung.begins += 1,
            Heard::Change => rung.changes += 1,
            Heard::Interruption => rung.interruptions += 1,
        });
    }

    /// Listens to everything from now on, if it must and does not yet.
    fn listen_to(&self, interest: Interest, database: &Database) -> Result<(), Errno> {
        let mut before = locked(&self.listened);
        if interest == Interest::Everything
            && *before != Interest::Everything
            && let Some(notifier) = &self.notifier
        {
            notifier::listen(notifier, database, interest)?;
            *before = interest;
        }
        Ok(())
    }

    fn end(&self, error: StoreError) {
        self.rung.send_modify(|rung| rung.over = Some(error));
    }

    /// Reads what the kernel has said, and rings.
    fn drain(&self, notifier: &OwnedFd, database: &Database) {
        // Kept: whoever begins to listen to everything meanwhile would be undone.
        let listened = locked(&self.listened);
        match notifier::drain(notifier, database, *listened) {
            Ok(Some(heard)) => self.ring(heard),
            // Another watch was faster.
            Ok(None) => {}
            Err(error) => self.end(over(database, &error.into())),
        }
    }

    fn check_at(&self) -> Instant {
        *locked(&self.check_at)
    }

    /// Whether somebody is to look at the commits; once for each time.
    fn is_due(&self) -> bool {
        let (mut check_at, now) = (locked(&self.check_at), Instant::now());
        let is_due = *check_at <= now;
        if is_due {
            *check_at = now + self.notifier.as_ref().map_or(POLL_EVERY, |_| CHECK_EVERY);
        }
        is_due
    }

    /// Whether the watches look for themselves and need not any more. One lack of descriptors would have them
    /// do so for good.
    fn can_be_told_again(&self, database: &Database) -> bool {
        if self.notifier.is_some() {
            return false;
        }
        let (mut ask_again_at, now) = (locked(&self.ask_again_at), Instant::now());
        if now < *ask_again_at {
            return false;
        }
        *ask_again_at = now + CHECK_EVERY;
        notifier::open(database, *locked(&self.listened)).is_ok()
    }

    /// Looks at the commits, unless another watch has, and rings.
    fn check(&self, database: &Database) {
        if !self.is_due() {
            return;
        }
        if self.can_be_told_again(database) {
            let why =
                std::io::Error::other("the kernel tells of changes again, and need not be asked for them");
            return self.end(over(database, &why));
        }
        let ear = self.ear.take(|| Ear::open(database));
        match ear.and_then(|ear| ear.listen()) {
            Ok(Some(heard)) => {
                if let (Heard::Interruption, Some(notifier)) = (heard, &self.notifier)
                    // The directory itself may be another, and the wake file with it, of which that one says
                    // nothing.
                    && let Err(error) = notifier::listen(notifier, database, *locked(&self.listened))
                {
                    return self.end(over(database, &error.into()));
                }
                self.ring(heard);
            }
            Ok(None) => {}
            Err(trouble) if trouble.is_locked() => {}
            Err(trouble) => self.end(trouble.into_error("the watch", &database.shown)),
        }
    }
}

impl Listener {
    /// Hears of what it listens to from now on.
    pub(crate) async fn start(database: &Database, interest: Interest) -> Result<Self, StoreError> {
        let bell = Bell::of(database, interest).await?;
        let listening = bell.listen_to(interest, database);
        listening.map_err(|error| over(database, &error.into()))?;
        let registered = |notifier| reactor::register(fcntl_dupfd_cloexec(notifier, 0)?);
        let ready = bell.notifier.as_ref().map(registered).transpose();
        let ready = ready.map_err(|error| over(database, &error.into()))?;
        let mut news = bell.rung.subscribe();
        let heard = news.borrow_and_update().clone();
        Ok(Self {
            bell,
            ready,
            news,
            heard,
            interest,
        })
    }

    /// The next ring. Dropping it loses none: it was counted.
    pub(crate) async fn next(&mut self, database: &Database) -> Result<Heard, StoreError> {
        loop {
            if let Some(heard) = self.told()? {
                return Ok(heard);
            }
            tokio::select! {
                ready = readable(self.ready.as_ref()) => {
                    let mut ready = ready.map_err(|error| over(database, &error))?;
                    self.bell.drain(ready.get_inner(), database);
                    ready.clear_ready();
                }
                changed = self.news.changed() => changed.expect("the bell, which this keeps, has the other end"),
                () = sleep_until(self.bell.check_at()) => self.bell.check(database),
            }
        }
    }

    /// What was rung since the last time.
    fn told(&mut self) -> Result<Option<Heard>, StoreError> {
        let rung = self.news.borrow_and_update().clone();
        if let Some(error) = rung.over {
            return Err(error);
        }
        let heard = if rung.interruptions != self.heard.interruptions {
            Some(Heard::Interruption)
        } else if rung.changes != self.heard.changes {
            Some(Heard::Change)
        } else if rung.begins != self.heard.begins && self.interest == Interest::Everything {
            Some(Heard::Begin)
        } else {
            None
        };
        self.heard = rung;
        Ok(heard)
    }
}

/// Ends when there is something to read; never, where the kernel is not asked.
async fn readable(notifier: Option<&AsyncFd<OwnedFd>>) -> std::io::Result<AsyncFdReadyGuard<'_, OwnedFd>> {
    match notifier {
        Some(notifier) => notifier.readable().await,
        None => pending().await,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
