//! The write-ahead log as a file of its own: putting on the disk what was committed.

use crate::files::{FileIdentity, Files, Paths};
use crate::trouble::Trouble;
use rusqlite::Connection;
use rustix::fs::{Mode, OFlags, fdatasync};
use std::cell::Cell;
use std::os::fd::OwnedFd;

/// The log of an open database.
///
/// SQLite itself can put each commit on the disk (`synchronous=FULL`), while it holds the write lock: nobody else writes
/// until the disk has answered. What must be there before it is *used* need not be there before others see it. So the
/// connection hands commits to the kernel, and a new term is put on the disk after its transaction, by the same call on the
/// same file. What a later commit adds to the log follows what was there before: synced, it takes along all of it.
pub(crate) struct Log {
    descriptor: OwnedFd,
    /// A sync has failed. The kernel tells that once to each who has the file open, and may have forgotten what it could not
    /// write: a later sync that succeeds proves nothing.
    is_doubtful: Cell<bool>,
}

impl Log {
    /// Opens the log that stands at its path; `None` if that is another than `files` says.
    ///
    /// SQLite's locks are on the other two files: to open and close this one ends none of them.
    pub(crate) fn open(paths: &Paths, files: &Files) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let descriptor = rustix::fs::open(&paths.log, flags, Mode::empty()).ok()?;
        let is_ours = files.log.is_some() && FileIdentity::of_open(&descriptor) == files.log;
        is_ours.then(|| Self {
            descriptor,
            is_doubtful: Cell::new(false),
        })
    }

    /// Has all that is committed on the disk when it returns.
    ///
    /// # Errors
    /// [`Trouble::Unsynced`]: what was committed is seen by everybody, and a power cut may take it.
    pub(crate) fn sync(&self) -> Result<(), Trouble> {
        fdatasync(&self.descriptor).map_err(|errno| {
            self.is_doubtful.set(true);
            Trouble::Unsynced(errno.into())
        })
    }

    /// Called before what shall be synced: where a sync has failed, writes all that the log holds into the database, has
    /// that on the disk, and begins the log anew.
    ///
    /// # Errors
    /// [`Trouble::Statement`], and [`Trouble::StillUnsynced`] while somebody reads what the log holds: nothing was changed.
    pub(crate) fn mend(&self, connection: &Connection) -> Result<(), Trouble> {
        if self.is_doubtful.get() {
            let blocked: bool =
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            if blocked {
                return Err(Trouble::StillUnsynced);
            }
            self.is_doubtful.set(false);
        }
        Ok(())
    }
}
