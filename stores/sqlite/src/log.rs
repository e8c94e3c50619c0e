//! The write-ahead log as a file of its own: putting on the disk what was committed.

use crate::files::{FileIdentity, Files, Paths};
use crate::trouble::Trouble;
use rusqlite::Connection;
use rustix::fs::{FlockOperation, Mode, OFlags, fdatasync, flock};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::Builder;
use tokio::sync::{Mutex, oneshot};

/// The log of an open database.
///
/// SQLite itself can put each commit on the disk (`synchronous=FULL`), while it holds the write lock: nobody
/// else writes until the disk has answered. What must be there before it is *used* need not be there before
/// others see it. So the connection hands commits to the kernel, and a new term is put on the disk after its
/// transaction, by the same call on the same file. What a later commit adds to the log follows what was there
/// before: synced, it takes along all of it.
pub(crate) struct Log {
    descriptor: OwnedFd,
    /// A sync has failed. The kernel tells that once to each who has the file open, and may have forgotten
    /// what it could not write: a later sync that succeeds proves nothing.
    is_doubtful: AtomicBool,
    /// One sync at a time: the kernel tells a failure to one of them, which has to be noted before another
    /// succeeds.
    turn: Mutex<()>,
    /// What syncs for others, once somebody has asked.
    thread: std::sync::Mutex<Option<Sender<Asked>>>,
    #[cfg(test)]
    syncs: std::sync::atomic::AtomicUsize,
}

/// What is to be synced, and where to say what came of it.
type Asked = (Arc<Log>, oneshot::Sender<Result<(), Errno>>);

impl Log {
    /// Opens the log that stands at its path; `None` if that is another than `files` says.
    ///
    /// SQLite's locks are on the other two files: to open and close this one ends none of them.
    pub(crate) fn open(paths: &Paths, files: &Files) -> Option<Arc<Self>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let descriptor = rustix::fs::open(&paths.log, flags, Mode::empty()).ok()?;
        let is_ours = files.log.is_some() && FileIdentity::of_open(&descriptor) == files.log;
        is_ours.then(|| {
            Arc::new(Self {
                descriptor,
                is_doubtful: AtomicBool::new(false),
                turn: Mutex::new(()),
                thread: std::sync::Mutex::default(),
                #[cfg(test)]
                syncs: std::sync::atomic::AtomicUsize::default(),
            })
        })
    }

    /// Whether this handle alone, of all that have the file open, may take up the processor to get at its
    /// lock: see [`insistence`](crate::insistence). SQLite itself puts no lock on a log.
    pub(crate) fn reserve(&self) -> bool {
        flock(&self.descriptor, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// The end of that. It also ends with the process.
    pub(crate) fn give_back(&self) {
        // It fails for nobody who has it.
        let _swallowed = flock(&self.descriptor, FlockOperation::Unlock);
    }

    /// Has all that was committed on the disk when it returns, on the thread that calls. Nothing is done if
    /// another sync is under way, which may take long.
    ///
    /// # Errors
    /// [`Trouble::Unsynced`]: what was committed is seen by everybody, and a power cut may take it.
    pub(crate) fn sync_here(&self) -> Option<Result<(), Trouble>> {
        let _turn = self.turn.try_lock().ok()?;
        Some(self.sync().map_err(unsynced))
    }

    /// The same on another thread, after the one that is under way, and together with all that others have
    /// asked for until then: who asks for it serves others meanwhile. Given up, it goes on, and a failure is
    /// noted all the same. Where there is no thread left, on the one that asks.
    ///
    /// # Errors
    /// As [`sync_here`](Self::sync_here).
    pub(crate) async fn sync_elsewhere(self: Arc<Self>) -> Result<(), Trouble> {
        let (synced, told) = oneshot::channel();
        let outcome = match self.ask_thread((Arc::clone(&self), synced)) {
            // Never told: it has ended.
            true => told.await.unwrap_or(Err(Errno::IO)),
            false => {
                let _turn = self.turn.lock().await;
                self.sync()
            }
        };
        outcome.map_err(unsynced)
    }

    /// Has the thread do it that syncs for others; `false` if there is none. None of the runtime's: where the
    /// system gives it none, it panics, and keeps what it was to do for ever.
    fn ask_thread(&self, asked: Asked) -> bool {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = match &*thread {
            Some(sender) => match sender.send(asked) {
                Ok(()) => return true,
                Err(ended) => ended.0,
            },
            None => asked,
        };
        let (sender, work) = channel();
        let _kept = sender.send(asked);
        let spawned = Builder::new()
            .name("tenure-sync".to_owned())
            .spawn(|| sync_for_others(work));
        *thread = spawned.ok().map(|_| sender);
        thread.is_some()
    }

    /// Lets no sync begin, as if the disk stalled, until what is answered is dropped.
    #[cfg(test)]
    pub(crate) fn stall(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.try_lock().expect("no sync is under way")
    }

    fn sync(&self) -> Result<(), Errno> {
        // One that failed since this was committed has had the kernel's word for it, too.
        if self.is_doubtful.load(Ordering::SeqCst) {
            return Err(Errno::IO);
        }
        #[cfg(test)]
        self.syncs.fetch_add(1, Ordering::SeqCst);
        fdatasync(&self.descriptor).inspect_err(|_| self.is_doubtful.store(true, Ordering::SeqCst))
    }

    /// Called before what shall be synced: where a sync has failed, begins the log anew.
    ///
    /// # Errors
    /// As [`begin_anew`].
    pub(crate) fn mend(&self, connection: &Connection) -> Result<(), Trouble> {
        if self.is_doubtful.load(Ordering::SeqCst) {
            begin_anew(connection)?;
            // No sync is under way: none begins while there is doubt.
            self.is_doubtful.store(false, Ordering::SeqCst);
        }
        Ok(())
    }
}

fn unsynced(errno: Errno) -> Trouble {
    Trouble::Unsynced(errno.into())
}

/// Until a sync fails, or nobody can ask any more. All who have asked before a sync begins have committed
/// before it, and are served by it: terms that are many wait for the disk together, and not one after the
/// other.
fn sync_for_others(work: Receiver<Asked>) {
    let mut work = Some(work);
    while let Some((log, first)) = work.as_ref().and_then(|work| work.recv().ok()) {
        let turn = log.turn.blocking_lock();
        let others: Vec<_> = work.iter().flat_map(Receiver::try_iter).collect();
        let outcome = log.sync();
        drop(turn);
        if outcome.is_err() {
            // Before anybody hears of it, and asks a thread that ends.
            work = None;
        }
        for synced in std::iter::once(first).chain(others.into_iter().map(|(_, synced)| synced)) {
            let _given_up = synced.send(outcome);
        }
    }
}

/// Writes all that the log holds into the database, has that on the disk, and begins the log anew. Nothing
/// without a log.
///
/// # Errors
/// [`Trouble::Statement`], and [`Trouble::StillUnsynced`] while somebody reads what the log holds: nothing
/// was changed.
pub(crate) fn begin_anew(connection: &Connection) -> Result<(), Trouble> {
    let blocked: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    match blocked {
        true => Err(Trouble::StillUnsynced),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::Log;
    use crate::acquire::acquire;
    use crate::database::Database;
    use crate::options::SqliteOptions;
    use crate::terms::{release, renew};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;
    use tenure_conformance::asking::{giving_back, granted, renewal, request, seconds};
    use tenure_core::{Acquire, Acquired, Attempt, Certainty, Released, Renewed, StoreError, Ttl};

    /// How long an answer is waited for, on a loaded machine.
    const BOUND: Duration = Duration::from_secs(60);

    fn run<Outcome>(work: impl Future<Output = Outcome>) -> Outcome {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(work)
    }

    fn opened(directory: &tempfile::TempDir) -> (Arc<Database>, Arc<Log>) {
        let options = SqliteOptions::new(directory.path().join("leases.db"));
        let database = Arc::new(Database::open(&options).unwrap());
        let log = Arc::clone(&database.session().ok().unwrap().log);
        (database, log)
    }

    async fn take(database: &Arc<Database>, asked: &Acquire) -> Result<Acquired, StoreError> {
        acquire(database, || "a lease".to_owned(), asked).await
    }

    /// It is committed, and waits for the disk: all that is between is that.
    async fn is_kept_waiting(taking: &mut (impl Future<Output = Result<Acquired, StoreError>> + Unpin)) {
        let answer = tokio::time::timeout(Duration::from_millis(200), taking).await;
        assert!(answer.is_err(), "the disk was not waited for: {answer:?}");
    }

    /// As two processes have it.
    #[test]
    fn one_handle_of_a_file_at_a_time_has_the_right_to_insist() {
        let directory = tempfile::tempdir().unwrap();
        let ((_one, first), (other, second)) = (opened(&directory), opened(&directory));
        assert!(first.reserve());
        assert!(!second.reserve());
        first.give_back();
        assert!(second.reserve());
        drop(other);
        drop(second);
        assert!(first.reserve());
    }

    /// A sync that is under way is what a disk that stalls leaves.
    #[test]
    fn a_disk_that_stalls_keeps_no_term_from_being_renewed() {
        let directory = tempfile::tempdir().unwrap();
        let (database, log) = opened(&directory);
        run(async {
            let held = request("held", "a", seconds(300));
            let term = granted(take(&database, &held).await.unwrap());
            let stalled = log.stall();
            let asked = request("job", "a", seconds(300));
            let mut taking = Box::pin(take(&database, &asked));
            is_kept_waiting(&mut taking).await;
            // On a thread of its own, so that a test that fails ends.
            let (sender, told) = std::sync::mpsc::channel();
            let (other, renewals) = (Arc::clone(&database), [renewal(&held, term.token)]);
            std::thread::spawn(move || sender.send(renew(&other, &renewals).ok().unwrap().remove(0)));
            let renewed = told.recv_timeout(BOUND).expect("the file is not locked");
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
            drop(stalled);
            let answer = tokio::time::timeout(BOUND, taking).await.unwrap();
            assert!(!granted(answer.unwrap()).again);
        });
    }

    #[test]
    fn a_term_that_was_given_up_while_the_disk_stalled_waits_for_it_when_it_is_asked_for_again() {
        let directory = tempfile::tempdir().unwrap();
        let (database, log) = opened(&directory);
        run(async {
            let stalled = log.stall();
            let asked = request("job", "a", seconds(300));
            for _ in 0..2 {
                let mut taking = Box::pin(take(&database, &asked));
                is_kept_waiting(&mut taking).await;
            }
            drop(stalled);
            let again = tokio::time::timeout(BOUND, take(&database, &asked))
                .await
                .unwrap();
            assert!(granted(again.unwrap()).again);
        });
    }

    /// The kernel tells it to one of those who wait for the same file.
    #[test]
    fn a_sync_that_fails_is_the_failure_of_all_who_wait_for_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let (database, log) = opened(&directory);
        run(async {
            let failing = log.stall();
            let asked = request("job", "a", seconds(300));
            let mut taking = Box::pin(take(&database, &asked));
            is_kept_waiting(&mut taking).await;
            log.is_doubtful.store(true, Ordering::SeqCst);
            drop(failing);
            let failed = tokio::time::timeout(BOUND, taking).await.unwrap().unwrap_err();
            assert_eq!(failed.certainty, Certainty::Unknown, "{failed}");
            // The log is begun anew, with all of it on the disk.
            let again = granted(take(&database, &asked).await.unwrap());
            assert!(again.again);
        });
    }

    #[test]
    fn terms_that_wait_for_the_disk_wait_for_it_together() {
        let directory = tempfile::tempdir().unwrap();
        let (database, log) = opened(&directory);
        run(async {
            for held in ["one", "two"] {
                let _term = granted(take(&database, &request(held, "a", seconds(300))).await.unwrap());
            }
            let before = log.syncs.load(Ordering::SeqCst);
            let stalled = log.stall();
            let asked: Vec<_> = (0..50)
                .map(|number| request(&format!("job {number}"), "a", seconds(300)))
                .collect();
            let mut taking: Vec<_> = asked
                .iter()
                .map(|asked| Box::pin(take(&database, asked)))
                .collect();
            for taking in &mut taking {
                let answer = tokio::time::timeout(Duration::from_millis(2), taking).await;
                assert!(answer.is_err(), "the disk was not waited for: {answer:?}");
            }
            drop(stalled);
            for taking in taking {
                let _term = granted(tokio::time::timeout(BOUND, taking).await.unwrap().unwrap());
            }
            assert_eq!(log.syncs.load(Ordering::SeqCst) - before, 1);
        });
    }

    /// As after a process was frozen past the ends of its terms.
    #[test]
    fn terms_that_were_lost_and_are_taken_again_are_counted_again() {
        let directory = tempfile::tempdir().unwrap();
        let (database, _log) = opened(&directory);
        run(async {
            let brief = Ttl::MIN;
            let asked = ["one", "two"].map(|name| request(name, "a", brief));
            let mut renewals = Vec::new();
            for asked in &asked {
                let term = granted(take(&database, asked).await.unwrap());
                renewals.push(renewal(asked, term.token));
            }
            tokio::time::sleep(brief.duration()).await;
            for renewed in renew(&database, &renewals).ok().unwrap() {
                assert!(matches!(renewed, Ok(Renewed::Lost(_))), "{renewed:?}");
            }
            assert!(!database.held.are_several());
            for asked in &asked {
                let _taken = granted(take(&database, asked).await.unwrap());
            }
            assert!(database.held.are_several());
        });
    }

    /// A release does not wait for a renewal that is under way, which then finds the record released; nor
    /// does the next term.
    #[test]
    fn a_renewal_that_was_overtaken_ends_no_term_but_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let (database, _log) = opened(&directory);
        run(async {
            let asked = ["released", "handed on", "kept"].map(|name| request(name, "a", seconds(300)));
            let mut renewals = Vec::new();
            for asked in &asked {
                let term = granted(take(&database, asked).await.unwrap());
                renewals.push(renewal(asked, term.token));
            }
            let back = giving_back(&asked[0], renewals[0].token);
            assert_eq!(
                release(&database, &[back]).ok().unwrap().remove(0),
                Ok(Released::Vacated)
            );
            let mut next = asked[1].clone();
            next.attempt = next.attempt.next();
            let _handed_on = granted(take(&database, &next).await.unwrap());
            for late in renew(&database, &renewals[..2]).ok().unwrap() {
                assert!(matches!(late, Ok(Renewed::Lost(_))), "{late:?}");
            }
            assert!(database.held.are_several());
        });
    }

    /// A lock that goes from task to task is one term, as long as it is not given back.
    #[test]
    fn terms_that_follow_each_other_in_one_process_are_counted_once() {
        let directory = tempfile::tempdir().unwrap();
        let (database, _log) = opened(&directory);
        run(async {
            let mut asked = request("job", "a", seconds(300));
            for attempt in 1..5 {
                asked.attempt = Attempt::new(attempt).unwrap();
                assert!(!granted(take(&database, &asked).await.unwrap()).again);
            }
            assert!(!database.held.are_several());
            take(&database, &request("other", "a", seconds(300)))
                .await
                .unwrap();
            assert!(database.held.are_several());
        });
    }
}
