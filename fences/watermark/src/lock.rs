//! The file beside a watermark's by which one process at a time has it.

use crate::ownership::Ownership;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a lock is taken anew whose file was made or removed between being opened and being locked.
const ATTEMPTS_MAX: u32 = 8;

/// How often a lock that another has is tried again. A short command has it for a few writes to disk.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A file that is locked for as long as this lives; the kernel unlocks it when the process dies.
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

/// Why there is no lock.
pub(crate) enum NotLocked {
    /// Another has it.
    Another,
    /// What is in its place is no file.
    NoFile,
    Failed(io::Error),
}

impl Lock {
    /// Locks the file at `path`, which is made where it is missing, as one of `ownership`. Where another has
    /// it, waits for that at most for `patience`: it blocks its thread.
    pub(crate) fn take(path: &Path, ownership: &Ownership, patience: Duration) -> Result<Self, NotLocked> {
        let began = Instant::now();
        loop {
            match Self::try_take(path, ownership) {
                Err(NotLocked::Another) if began.elapsed() < patience => sleep(LOOK_EVERY),
                taken => return taken,
            }
        }
    }

    fn try_take(path: &Path, ownership: &Ownership) -> Result<Self, NotLocked> {
        if is_no_file(path) {
            return Err(NotLocked::NoFile);
        }
        for _ in 0..ATTEMPTS_MAX {
            let file = match OpenOptions::new().write(true).open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => ownership.make(path),
                opened => opened,
            };
            let file = match file {
                // Another has made it meanwhile.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file.map_err(NotLocked::Failed)?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(NotLocked::Another),
                Err(TryLockError::Error(error)) => return Err(NotLocked::Failed(error)),
            }
            let path = path.to_owned();
            let lock = Self { file, path };
            if lock.is_in_place().map_err(NotLocked::Failed)? {
                return Ok(lock);
            }
        }
        Err(NotLocked::Another)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is still the one that others find and cannot lock. One that was removed or replaced
    /// keeps nobody out.
    pub(crate) fn is_in_place(&self) -> io::Result<bool> {
        let identity = |of: &Metadata| (of.dev(), of.ino());
        let found = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            found => found?,
        };
        Ok(identity(&found) == identity(&self.file.metadata()?))
    }
}

/// Whether something is there that cannot be locked: to open a pipe is to wait for its reader, and some
/// devices do something when they are opened. Nothing is made through a link that leads nowhere.
fn is_no_file(path: &Path) -> bool {
    match path.metadata() {
        Ok(found) => !found.is_file(),
        Err(error) => error.kind() == ErrorKind::NotFound && path.is_symlink(),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that was forked just now and has not yet executed shares the lock: closing would not end
        // it.
        let _closing_does = self.file.unlock();
    }
}
