//! The file of a watermark: replaced as a whole, so that a crash leaves the old one or the new one.
//!
//! ```text
//! tenure watermark 1
//! claimed<TAB>1763712000123<TAB>2<TAB>1763711000456<TAB>nightly<TAB>ledger
//! end<TAB>1<TAB>8c736521
//! ```
//! A line holds how the mark was raised, the mark, refusals, the token refused last (or `-`), lease,
//! resource. No name holds a tab: control characters are refused in names. The last line counts the lines
//! before it, and holds the CRC-32 of every byte before itself.

use crate::disk::Disk;
use crate::lock::{Lock, NotLocked};
use crate::ownership::Ownership;
use crate::place;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tenure_core::{Fault, FenceError, FencingToken, LeaseName, Mark, ResourceName, StoreError};
use tenure_local::FileSystemTrust;

const HEADER: &str = "tenure watermark 1";

/// Largest file that is read, in bytes: [`RESOURCES_MAX`](crate::RESOURCES_MAX) lines of the longest names.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Writes the file, and keeps other processes out.
pub(crate) struct Keeper {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// What the file holds. One writes at a time.
    written: Mutex<Vec<u8>>,
    lock: Lock,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keeper").field(&self.path).finish()
    }
}

impl Keeper {
    /// Locks and reads the file, and makes it where it is missing. Waits for another process that has it at
    /// most for `patience`.
    pub(crate) fn open(
        path: &Path,
        trust: FileSystemTrust,
        patience: Duration,
        disk: Box<dyn Disk>,
    ) -> Result<(Self, Vec<Mark>), FenceError> {
        let failed = |error| failure(path, &error);
        let path = place::found(path)?;
        place::must_be_of_this_machine(&path, trust)?;
        // Before anything is made: beside a file of another program a lock may be that program's.
        drop(look(&path)?);
        let ownership = Ownership::of(&path).map_err(failed)?.writable();
        let lock = beside(&path, ".lock");
        let lock = Lock::take(&lock, &ownership, patience).map_err(|error| match error {
            NotLocked::NoFile => {
                let message = format!(
                    "cannot be locked: {} is no plain file; remove it",
                    lock.display()
                );
                told(Fault::Invalid, &path, &message)
            }
            NotLocked::Another => told(
                Fault::Busy,
                &path,
                "is open in another process; one at a time may keep its marks there: stop it, or give each a file of \
                 its own",
            ),
            NotLocked::Failed(error) => failed(error),
        })?;
        place::must_have_one_path(&path)?;
        let (written, kept) = match read(&path, &*disk) {
            Ok(Some(bytes)) => {
                let kept = understood(&path, &bytes)?;
                (bytes, kept)
            }
            Ok(None) => (Vec::new(), Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let keeper = Self {
            path,
            disk,
            written: Mutex::new(written),
            lock,
        };
        // Made now, so that a place that cannot be written is told now.
        keeper.save(|| kept.clone())?;
        Ok((keeper, kept))
    }

    /// Replaces the file by what `marks` answers once it is this caller's turn. When it returns, everything
    /// that was raised before is on disk.
    pub(crate) fn save(&self, marks: impl FnOnce() -> Vec<Mark>) -> Result<(), FenceError> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = render(&marks());
        if bytes == *written {
            // Also a claim that comes again, and finds its mark there, is confirmed by this.
            return self.must_be_alone();
        }
        self.replace(&bytes)?;
        *written = bytes;
        Ok(())
    }

    /// Writes a new file beside the old one, and puts it in its place once it is on disk.
    fn replace(&self, bytes: &[u8]) -> Result<(), FenceError> {
        let failed = |error| failure(&self.path, &error);
        // Another's new file may be half written.
        self.must_be_alone()?;
        let fresh = beside(&self.path, ".new");
        write(&fresh, &self.path, bytes, &*self.disk).map_err(failed)?;
        // What another has raised must not go back. Writing to disk may have taken long.
        self.must_be_alone()?;
        std::fs::rename(&fresh, &self.path)
            .and_then(|()| sync_name(&self.path, &*self.disk))
            .map_err(failed)
    }

    /// What stands in the file now, if another process may have it open by now: then what is known here tells
    /// nothing.
    pub(crate) fn unless_alone(&self) -> Option<Vec<Mark>> {
        if matches!(self.lock.is_in_place(), Ok(true)) {
            return None;
        }
        Some(look(&self.path).ok().flatten().unwrap_or_default())
    }

    /// Once the lock's file is gone, another process may have the marks open, and have raised one.
    pub(crate) fn must_be_alone(&self) -> Result<(), FenceError> {
        if self
            .lock
            .is_in_place()
            .map_err(|error| failure(&self.path, &error))?
        {
            return Ok(());
        }
        let lock = self.lock.path().display();
        let message = format!(
            "may be open in another process: {lock} was removed while it was open in this one, which writes it no \
             more; leave one of them running, restart that one, and do not remove {lock}"
        );
        Err(told(Fault::Busy, &self.path, &message))
    }
}

/// What the file holds now, without locking it; `None` if there is none. It is replaced as a whole, so what
/// is read is whole. It may not be on disk yet, so nobody may be admitted by it.
pub(crate) fn look(path: &Path) -> Result<Option<Vec<Mark>>, FenceError> {
    place::must_be_plain(path)?;
    let mut bytes = Vec::new();
    let looked = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    match looked {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failure(path, &error)),
        Ok(_) => understood(path, &bytes).map(Some),
    }
}

fn understood(path: &Path, bytes: &[u8]) -> Result<Vec<Mark>, FenceError> {
    parse(bytes).map_err(|why| {
        let message = format!(
            "is no watermark, or is damaged ({why}); it was left as it is: restore it, then raise every mark with \
             tenure fence bump"
        );
        told(Fault::Unreadable, path, &message)
    })
}

/// Writes a new file that is to replace the marks.
fn write(fresh: &Path, marks: &Path, bytes: &[u8], disk: &dyn Disk) -> io::Result<()> {
    match std::fs::remove_file(fresh) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // What a crash has left behind.
        removed => removed?,
    }
    let mut file = Ownership::of(marks)?.make(fresh)?;
    file.write_all(bytes)?;
    disk.sync(&file)
}

/// The name is the directory's: without this, a power cut may bring the old file back.
fn sync_name(path: &Path, disk: &dyn Disk) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    disk.sync(&File::open(directory)?)
}

/// What is on disk. Who wrote it may have been killed between the renaming and the sync of the directory:
/// then a power cut would bring the old file back after a term of the new one was admitted.
fn read(path: &Path, disk: &dyn Disk) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    disk.sync(&file)?;
    sync_name(path, disk)?;
    match file.metadata()?.len() {
        0..=FILE_BYTES_MAX => std::fs::read(path).map(Some),
        _more => Ok(Some(Vec::new())),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn render(marks: &[Mark]) -> Vec<u8> {
    let mut text = format!("{HEADER}\n");
    for mark in marks {
        let raised = if mark.bumped { "bumped" } else { "claimed" };
        let last = mark
            .last_refused
            .map_or_else(|| "-".to_owned(), |token| token.to_string());
        let lease = mark.lease.as_ref().map_or("", LeaseName::as_str);
        let (token, refused, resource) = (mark.token, mark.refused, &mark.resource);
        text.push_str(&format!(
            "{raised}\t{token}\t{refused}\t{last}\t{lease}\t{resource}\n"
        ));
    }
    let checksum = crc32fast::hash(text.as_bytes());
    text.push_str(&format!("end\t{}\t{checksum:08x}\n", marks.len()));
    text.into_bytes()
}

fn parse(bytes: &[u8]) -> Result<Vec<Mark>, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
    let body = text.strip_prefix(HEADER).and_then(|rest| rest.strip_prefix('\n'));
    let body = body.ok_or("its first line is another")?;
    let end = body.rfind("end\t").ok_or("its last line is missing")?;
    let (lines, last) = body.split_at(end);
    let (count, checksum) = last
        .strip_prefix("end\t")
        .and_then(|last| last.strip_suffix('\n'))
        .and_then(|last| last.split_once('\t'))
        .ok_or("its last line is not whole")?;
    let summed = &bytes[..bytes.len() - last.len()];
    if u32::from_str_radix(checksum, 16) != Ok(crc32fast::hash(summed)) {
        return Err("its checksum is wrong");
    }
    let marks: Option<Vec<Mark>> = lines.lines().map(line).collect();
    let marks = marks.ok_or("a line is no mark")?;
    if count.parse() != Ok(marks.len()) {
        return Err("lines are missing");
    }
    Ok(marks)
}

fn line(line: &str) -> Option<Mark> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [raised, token, refused, last, lease, resource] = fields.try_into().ok()?;
    let bumped = match raised {
        "claimed" => false,
        "bumped" => true,
        _ => return None,
    };
    let last_refused = match last {
        "-" => None,
        // For people. An earlier Tenure has counted what is no token any more.
        number => FencingToken::new(number.parse().ok()?).ok(),
    };
    Some(Mark {
        resource: ResourceName::new(resource).ok()?,
        lease: match lease {
            "" => None,
            lease => Some(LeaseName::new(lease).ok()?),
        },
        token: token.parse().ok()?,
        bumped,
        refused: refused.parse().ok()?,
        last_refused,
    })
}

pub(crate) fn told(fault: Fault, path: &Path, message: &str) -> FenceError {
    FenceError::Store(StoreError::not_applied(
        fault,
        format!("the watermark {} {message}", path.display()),
    ))
}

pub(crate) fn failure(path: &Path, error: &io::Error) -> FenceError {
    let (fault, way_out) = match error.kind() {
        ErrorKind::PermissionDenied => (
            Fault::Forbidden,
            "give this user permission on it and its directory",
        ),
        ErrorKind::ReadOnlyFilesystem => (Fault::ReadOnly, "give a path that can be written"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => (Fault::Full, "free some space on that disk"),
        ErrorKind::NotFound | ErrorKind::NotADirectory => (Fault::Unreachable, "make its directory first"),
        _ => (Fault::Internal, "see the disk and the kernel's log"),
    };
    // A mark may be in the file although the last step failed: it only rises, so claiming again is safe.
    FenceError::Store(StoreError::unknown(
        fault,
        format!(
            "the watermark {} cannot be kept: {error}; {way_out}",
            path.display()
        ),
    ))
}
