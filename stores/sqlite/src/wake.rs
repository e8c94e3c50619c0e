//! The file beside the database whose being read wakes the candidates that wait, and whose being opened tells
//! of terms that begin.

use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown};
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a descriptor is used before the file is opened anew: who has moved or deleted it leaves nobody
/// asleep for longer than a watch leaves itself, which looks once a second.
const USED_FOR: Duration = Duration::from_secs(1);

/// `<database>-wake`. It holds one byte that means nothing; only that somebody reads or opens it means
/// something.
///
/// The database itself cannot serve: its log changes with every renewal, and a renewal must wake nobody.
pub(crate) struct WakeFile {
    database: PathBuf,
    path: PathBuf,
    open: Mutex<Option<Open>>,
}

struct Open {
    descriptor: OwnedFd,
    since: Instant,
}

impl WakeFile {
    /// The wake file of this database.
    pub(crate) fn beside(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wake");
        Self {
            database: database.to_owned(),
            path: path.into(),
            open: Mutex::new(None),
        }
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whoever watches everything that a term began, and wakes nobody else: opens the file.
    ///
    /// A failure is swallowed, as of [`knock`](Self::knock).
    pub(crate) fn tell_of_a_term(&self) {
        let _swallowed = self.open();
    }

    /// Wakes whoever watches: reads the file.
    ///
    /// A new time stamp would wake them, too, but dirty the file's inode, and the next sync of a token would
    /// have to write it to the disk. To open it would wake them without a byte in it, and costs five times as
    /// much.
    ///
    /// A failure is swallowed on purpose: the change is committed, the watch is a hint, and waiting
    /// candidates also wake by the clock.
    pub(crate) fn knock(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = open.take().filter(|open| open.since.elapsed() < USED_FOR);
        *open = fresh.or_else(|| self.open().ok());
        if let Some(open) = &*open
            && pread(&open.descriptor, &mut [0], 0) == Ok(0)
            && self.create().is_ok()
        {
            // It was empty, and to read nothing wakes nobody.
            let _swallowed = pread(&open.descriptor, &mut [0], 0);
        }
    }

    fn open(&self) -> Result<Open, Errno> {
        let descriptor = match self.open_to_read() {
            Err(Errno::NOENT) => self.create().and_then(|()| self.open_to_read()),
            opened => opened,
        }?;
        let since = Instant::now();
        Ok(Open { descriptor, since })
    }

    fn open_to_read(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let open = |flags| rustix::fs::open(&self.path, flags, Mode::empty());
        match open(flags | OFlags::NOATIME) {
            // Only the file's owner may read without leaving a time stamp.
            Err(Errno::PERM) => open(flags),
            opened => opened,
        }
    }

    /// Makes the file if it is not there, and puts a byte into it, for whoever may use the database.
    pub(crate) fn create(&self) -> Result<(), Errno> {
        let database = rustix::fs::stat(&self.database)?;
        let mode = Mode::from_raw_mode(database.st_mode & 0o666);
        let open = |how| {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | how;
            rustix::fs::open(&self.path, flags, mode)
        };
        let file = match open(OFlags::CREATE | OFlags::EXCL) {
            Err(Errno::EXIST) => open(OFlags::empty())?,
            made => {
                let file = made?;
                // As SQLite does with the log: neither a strict umask nor root, who only looks in, shuts
                // others out.
                let (owner, group) = (Uid::from_raw(database.st_uid), Gid::from_raw(database.st_gid));
                let _if_allowed = fchmod(&file, mode).and_then(|()| fchown(&file, Some(owner), Some(group)));
                file
            }
        };
        if rustix::fs::fstat(&file)?.st_size == 0 {
            pwrite(&file, b"\n", 0)?;
        }
        Ok(())
    }
}
