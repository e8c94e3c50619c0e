//! The files that an open database consists of, and whether they are those at its path.
//!
//! SQLite's log (`-wal`) and the index of the log with its locks (`-shm`) stand beside the database while
//! anybody has it open. Somebody who removes them then (`rm FILE-*`, a restore, `rsync --delete`) parts those
//! who have it open from those who open it afterwards, as surely as if the database itself were replaced:
//! neither sees what the others write, and their locks do not meet.
//!
//! Nobody removes them rightly: SQLite does it when the last connection is closed, and each connection that
//! has read in a write-ahead log keeps a shared lock on the database until then.

use crate::trouble::Trouble;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tenure_core::{Fault, StoreError};

/// What this process has open, as links.
const DESCRIPTORS: &str = "/proc/self/fd";
/// What the kernel writes behind the path of an open file that was removed.
const REMOVED: &[u8] = b" (deleted)";

/// Where the files of one database are.
#[derive(Clone)]
pub(crate) struct Paths {
    pub(crate) database: PathBuf,
    pub(crate) log: PathBuf,
    index: PathBuf,
    /// By which the database was named, if not by that path: symbolic links may be in it, and lead elsewhere
    /// later.
    named: Option<PathBuf>,
}

impl Paths {
    /// Those of the database at this path, which is absolute and without symbolic links.
    pub(crate) fn of(database: &Path) -> Self {
        let beside = |suffix| {
            let mut path = OsString::from(database);
            path.push(suffix);
            PathBuf::from(path)
        };
        Self {
            log: beside("-wal"),
            index: beside("-shm"),
            database: database.to_owned(),
            named: None,
        }
    }

    /// The same, where somebody has named the database by this path: what it leads to by then is what others
    /// will use.
    pub(crate) fn named(self, named: PathBuf) -> Self {
        let named = Some(named).filter(|named| *named != self.database);
        Self { named, ..self }
    }

    /// The path by which others find the database.
    pub(crate) fn name(&self) -> &Path {
        self.named.as_deref().unwrap_or(&self.database)
    }

    /// Which file stands at the path, unless the name leads to another by now.
    fn database(&self) -> Option<FileIdentity> {
        let found = FileIdentity::of(&self.database);
        match &self.named {
            Some(named) => found.filter(|found| FileIdentity::of(named) == Some(*found)),
            None => found,
        }
    }
}

/// Which file stands at a path: device, major and minor, and number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity(u32, u32, u64);

impl FileIdentity {
    /// `None` where there is none, and for a file with several names: no connection to it is ever the right
    /// one.
    ///
    /// Asks for no time stamp, which `stat` does: since Linux 6.13 the first write after somebody has seen a
    /// stamp makes a new one, exact to the nanosecond, and each sync of the log would have to write its
    /// inode, too.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Self::told_by(CWD, path, AtFlags::empty())
    }

    /// The same of an open file.
    pub(crate) fn of_open(descriptor: &OwnedFd) -> Option<Self> {
        Self::told_by(descriptor.as_fd(), Path::new(""), AtFlags::EMPTY_PATH)
    }

    fn told_by(folder: BorrowedFd<'_>, path: &Path, how: AtFlags) -> Option<Self> {
        let asked = StatxFlags::INO | StatxFlags::NLINK;
        let stat = statx(folder, path, how, asked).ok()?;
        (stat.stx_nlink <= 1).then_some(Self(stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino))
    }

    /// Opens what stands at this path, and says which file that is: `None` if it is not known, as another
    /// stood there before or stands there since. Only what stood there before and still does is known to be
    /// what was opened.
    pub(crate) fn of_opening<T>(
        path: &Path,
        open: impl FnOnce() -> Result<T, Trouble>,
    ) -> Result<(T, Option<Self>), Trouble> {
        let before = Self::of(path);
        let opened = open()?;
        Ok((opened, Self::of(path).filter(|after| Some(*after) == before)))
    }
}

/// Which files stand at the paths of one database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Files {
    database: Option<FileIdentity>,
    pub(crate) log: Option<FileIdentity>,
    index: Option<FileIdentity>,
}

impl Files {
    /// Those that stand there now: three looks of about a microsecond, and a fourth where links may lead
    /// there.
    pub(crate) fn at(paths: &Paths) -> Self {
        Self {
            database: paths.database(),
            log: FileIdentity::of(&paths.log),
            index: FileIdentity::of(&paths.index),
        }
    }

    /// Those that stand there now, if this very database still does.
    pub(crate) fn beside(database: FileIdentity, paths: &Paths) -> Option<Self> {
        Some(Self::at(paths)).filter(|files| files.database == Some(database))
    }

    /// Those of this database, which was opened just now and has read in its write-ahead log; `None` if what
    /// this process has open is not what stands there.
    pub(crate) fn of_opened(
        database: FileIdentity,
        paths: &Paths,
        shown: &str,
    ) -> Result<Option<Self>, Trouble> {
        let Some(files) = Self::beside(database, paths) else {
            return Ok(None);
        };
        let open = OpenHere::find(paths, files, shown)?;
        Ok((!open.removed && open.log && open.index).then_some(files))
    }
}

/// Refuses to open one more connection while this process has a log or an index of the database open that was
/// removed. Within a process SQLite shares the index: the new connection would read, and write, one log by
/// the index of another.
pub(crate) fn refuse_removed(paths: &Paths, shown: &str) -> Result<(), Trouble> {
    if OpenHere::find(paths, Files::at(paths), shown)?.removed {
        return Err(Trouble::Parted);
    }
    Ok(())
}

/// What this process has open of a database, by whichever of its connections.
#[derive(Default)]
struct OpenHere {
    /// The log at the path.
    log: bool,
    /// The index at the path.
    index: bool,
    /// A log or an index that was there and was removed.
    removed: bool,
}

impl OpenHere {
    fn find(paths: &Paths, files: Files, shown: &str) -> Result<Self, Trouble> {
        Self::among_descriptors(paths, files).map_err(|error| {
            // What lacks now may be there later: no descriptor is left, or no memory.
            let (fault, way_out) = match error.kind() {
                ErrorKind::NotFound | ErrorKind::PermissionDenied => (Fault::Unsupported, "mount /proc"),
                _ => (Fault::Internal, "see the limits of this process (ulimit -n)"),
            };
            Trouble::Told(StoreError::not_applied(
                fault,
                format!("cannot tell which log of {shown} is open here: {error} ({DESCRIPTORS}); {way_out}"),
            ))
        })
    }

    fn among_descriptors(paths: &Paths, files: Files) -> io::Result<Self> {
        let mut open = Self::default();
        for descriptor in std::fs::read_dir(DESCRIPTORS)? {
            let descriptor = descriptor?.path();
            // Another thread may have closed it meanwhile.
            let Ok(target) = descriptor.read_link() else {
                continue;
            };
            let target = target.as_os_str().as_bytes();
            if let Some(removed) = target.strip_suffix(REMOVED) {
                open.removed |= [&paths.log, &paths.index]
                    .iter()
                    .any(|path| path.as_os_str().as_bytes() == removed);
            // Only what may be one is looked at: of what is open on a network a look may take long.
            } else if target.ends_with(b"-wal") {
                open.log |= files.log.is_some() && FileIdentity::of(&descriptor) == files.log;
            } else if target.ends_with(b"-shm") {
                open.index |= files.index.is_some() && FileIdentity::of(&descriptor) == files.index;
            }
        }
        Ok(open)
    }
}

/// Prepares a connection to be closed whose files no longer stand at their paths: it must neither write its
/// log into the database, in which others may have gone on without it, nor remove what stands there now.
pub(crate) fn abandon(connection: &Connection) {
    // It fails for no open connection.
    let _swallowed = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
}
