//! The open file: its connections, its clock, and what is beside it.

use crate::bell::Hook;
use crate::clock::BootClock;
use crate::files::{self, FileIdentity, Files, Paths};
use crate::held::HeldTerms;
use crate::log::Log;
use crate::only_path;
use crate::options::SqliteOptions;
use crate::patience::{Patience, patiently_blocking};
use crate::place;
use crate::schema;
use crate::seat::{self, Connected, Seat, Seated};
use crate::trouble::Trouble;
use crate::wake::WakeFile;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, FileType, Mode, inotify, mknodat};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::{Fault, LeaseName, StoreError};
use tenure_local::{FileSystem, FileSystemTrust};

/// Statements that one connection keeps prepared; there are about twenty.
const STATEMENTS_MAX: usize = 40;

/// To how many bytes a log that has grown is cut when it is begun anew.
const LOG_BYTES_KEPT: i64 = 64 << 20;

/// Pages that one connection keeps, in KiB; SQLite's own default is 2,000. A new term touches a handful of
/// pages; a beat of thousands of locks goes through the table in the order of its names, and needs no page
/// twice.
const CACHE_KIB: i64 = 256;

/// How many leases a handle remembers as its own: a lock, and the places in its queue.
const OWN_MAX: usize = 8;

/// How often a file is opened in a row that is another one by then. A new file takes two: the first makes it.
const OPENINGS_MAX: usize = 5;

/// The connection of a handle, and the log that it writes.
///
/// What is committed survives the end of the process. A power cut may take it until the log is synced; but a
/// power cut also ends the boot whose clock the record was written by.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) log: Arc<Log>,
}

impl Connected for Session {
    fn leave(&self) {
        files::abandon(&self.connection);
    }
}

/// An open store file.
pub(crate) struct Database {
    pub(crate) path: PathBuf,
    /// The path for people.
    pub(crate) shown: String,
    pub(crate) clock: BootClock,
    pub(crate) patience: Patience,
    pub(crate) wake: WakeFile,
    pub(crate) file_system: FileSystem,
    trust: FileSystemTrust,
    paths: Paths,
    session: Arc<Seat<Session>>,
    /// Made at opening, so that the store can say how its watches will work; the first bell takes it.
    notifier: Mutex<Option<OwnedFd>>,
    notifies: bool,
    pub(crate) bell: Hook,
    /// The leases that this handle was granted or gave back last, the latest at the end.
    own: Mutex<VecDeque<LeaseName>>,
    pub(crate) held: HeldTerms,
}

impl Database {
    /// Opens the file, making it where it is missing. Blocks, for milliseconds as a rule.
    pub(crate) fn open(options: &SqliteOptions) -> Result<Self, StoreError> {
        let clock = BootClock::start()?;
        let place = place::find(options)?;
        let shown = place.path.display().to_string();
        let patience = Patience::new();
        let paths = Paths::of(&place.path).named(place.named);
        let opened = patiently_blocking(&patience, &shown, || begin_session(&paths, &shown))?;
        let notifier = notifier().ok();
        Ok(Self {
            wake: WakeFile::beside(&place.path),
            path: place.path,
            shown,
            clock,
            patience,
            file_system: place.file_system,
            trust: options.trust,
            session: Seat::new(paths.clone(), opened),
            paths,
            notifies: notifier.is_some(),
            notifier: Mutex::new(notifier),
            bell: Hook::default(),
            own: Mutex::new(VecDeque::with_capacity(OWN_MAX)),
            held: HeldTerms::default(),
        })
    }

    /// The connection, to the file that is at the path *now*: see [`Seat::take`]. While the file has a second
    /// name, every call is refused: see [`only_path`].
    pub(crate) fn session(&self) -> Result<Seated<'_, Session>, Trouble> {
        self.session.take(|| {
            let options = SqliteOptions::new(self.paths.name()).trust(self.trust);
            let place = place::find(&options).map_err(Trouble::Told)?;
            if place.path != self.path {
                return Err(Trouble::Told(place.is_not(&self.path)));
            }
            begin_session(&self.paths, &self.shown)
        })
    }

    /// The log that the connection writes, if it can be had just now.
    pub(crate) fn log(&self) -> Option<Arc<Log>> {
        Some(Arc::clone(&self.session().ok()?.log))
    }

    /// Notes that this handle was just granted `name`, or has just given it back.
    pub(crate) fn note_own(&self, name: &LeaseName) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.back() == Some(name) {
            return;
        }
        own.retain(|noted| noted != name);
        if own.len() == OWN_MAX {
            own.pop_front();
        }
        own.push_back(name.clone());
    }

    /// Whether `name` is one of those that this handle was granted or gave back last; once.
    pub(crate) fn forget_own(&self, name: &LeaseName) -> bool {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let place = own.iter().rposition(|noted| noted == name);
        place.and_then(|place| own.remove(place)).is_some()
    }

    /// Where the files are.
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    /// One more connection, for the watches.
    pub(crate) fn connect_once(&self) -> Result<(Connection, Files), Trouble> {
        // First to the same files: what they are is looked at there.
        let session = self.session()?;
        let (connection, file) = FileIdentity::of_opening(&self.path, || connect(&self.path))?;
        let check = || {
            schema::identity(&connection)?;
            drop(session);
            let files = Files::of_opened(file.ok_or(Trouble::Parted)?, &self.paths, &self.shown)?;
            files.ok_or(Trouble::Parted)
        };
        match check() {
            Ok(files) => Ok((connection, files)),
            Err(trouble) => Err(abandoned(&connection, trouble)),
        }
    }

    /// A descriptor for the watches; an error when the user has used up theirs.
    pub(crate) fn notifier(&self) -> Result<OwnedFd, rustix::io::Errno> {
        let spare = self
            .notifier
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        spare.map_or_else(notifier, Ok)
    }

    /// Whether file notification was to be had at opening.
    pub(crate) fn notifies(&self) -> bool {
        self.notifies
    }
}

fn notifier() -> Result<OwnedFd, rustix::io::Errno> {
    inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
}

fn begin_session(paths: &Paths, shown: &str) -> Result<(Session, Files), Trouble> {
    let path = &paths.database;
    for _ in 0..OPENINGS_MAX {
        seat::all_leave_if_others(path);
        files::refuse_removed(paths, shown)?;
        make_missing(path);
        let (connection, file) = FileIdentity::of_opening(path, || connect(path))?;
        let Some(file) = file else {
            continue;
        };
        let check = || {
            if connection.is_readonly("main")? {
                return Err(Trouble::Told(place::read_only(shown)));
            }
            schema::establish(&connection, shown)?;
            let files = Files::of_opened(file, paths, shown)?.ok_or(Trouble::Parted)?;
            let log = Log::open(paths, &files).ok_or(Trouble::Parted)?;
            Ok((log, files))
        };
        return match check() {
            Ok((log, files)) => Ok((Session { connection, log }, files)),
            Err(trouble) => Err(abandoned(&connection, trouble)),
        };
    }
    Err(Trouble::Told(StoreError::not_applied(
        Fault::Unreachable,
        format!("{shown} was removed or replaced while it was opened, {OPENINGS_MAX} times; try again"),
    )))
}

/// Makes the file where it is missing, for whom the umask lets in: SQLite would make it for its owner to
/// write alone, and what it makes beside it is as the file. What forbids it is told by SQLite, which tries
/// next.
///
/// Without a descriptor: the end of one would end the locks of whatever connection of this process has opened
/// the file meanwhile.
fn make_missing(path: &Path) {
    let _tried_again = mknodat(CWD, path, FileType::RegularFile, Mode::from_raw_mode(0o666), 0);
}

/// Whatever was wrong with what was opened: it may be no more what stands at the path.
fn abandoned(connection: &Connection, trouble: Trouble) -> Trouble {
    files::abandon(connection);
    trouble
}

fn connect(path: &Path) -> Result<Connection, Trouble> {
    // Here and not only where the place is found: a mount may have come since, and would not show in the
    // identity.
    only_path::check(path).map_err(Trouble::Told)?;
    // No URI: a file called "file:x?mode=memory" is a file.
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // The busy handler sleeps on this thread, longer and longer, and starves whoever waits longest.
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Triggers and views in the file are somebody's text; they shall not call what could harm.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // New terms are put on the disk by `Log`.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // Who was frozen while it read keeps the log from being begun anew, and it grows meanwhile.
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    Ok(connection)
}
