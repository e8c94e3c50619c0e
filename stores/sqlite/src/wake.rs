//! The file beside the database whose being opened and closed wakes the candidates that wait.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// `<database>-wake`. It holds nothing; only that somebody reads it means something.
///
/// The database itself cannot serve: its log changes with every renewal, and a renewal must wake nobody.
pub(crate) struct WakeFile {
    database: PathBuf,
    path: PathBuf,
}

impl WakeFile {
    /// The wake file of this database.
    pub(crate) fn beside(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wake");
        Self {
            database: database.to_owned(),
            path: path.into(),
        }
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Wakes whoever watches: opens the file to read, and closes it. By path, so that a deleted file comes
    /// back.
    ///
    /// A new time stamp would wake them, too, but dirty the file's inode, and the next sync of a token would
    /// have to write it to the disk.
    ///
    /// A failure is swallowed on purpose: the change is committed, the watch is a hint, and waiting
    /// candidates also wake by the clock.
    pub(crate) fn knock(&self) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if rustix::fs::open(&self.path, flags, Mode::empty()).map(drop) == Err(Errno::NOENT) {
            let _swallowed = self.create();
        }
    }

    /// Makes the file if it is not there, for whoever may use the database.
    pub(crate) fn create(&self) -> Result<(), Errno> {
        let mode = rustix::fs::stat(&self.database)?.st_mode & 0o666;
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::open(&self.path, flags, Mode::from_raw_mode(mode)).map(drop)
    }
}
