//! Where the file is, and whether leases may live there: all that can be said before SQLite is asked.

use crate::filesystem;
use crate::only_path;
use crate::options::{MissingDirectory, SqliteOptions};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tenure_core::{Fault, StoreError};
use tenure_local::FileSystem;

/// Symbolic links that are followed from the path to the file; the kernel's own bound.
const LINKS_MAX: usize = 40;

/// A place that may hold the file.
pub(crate) struct Place {
    /// Absolute, without symbolic links: what is beside the file is beside the real one.
    pub(crate) path: PathBuf,
    /// Absolute, as it was given.
    pub(crate) named: PathBuf,
    pub(crate) file_system: FileSystem,
}

impl Place {
    /// The answer where the links in a name have led to this place before. Whoever starts now elects in
    /// another file than whoever has that one open.
    pub(crate) fn is_not(&self, before: &Path) -> StoreError {
        StoreError::not_applied(
            Fault::Unreachable,
            format!(
                "{} leads to {} by now, and led to {} when the store was opened: whoever opens it now would not see what is \
                 written there; restart this process, or have the link lead back",
                self.named.display(),
                self.path.display(),
                before.display()
            ),
        )
    }
}

/// Finds the place, making its directory where the options say so.
///
/// # Errors
/// One line with the path and the way out; the faults say what kind.
pub(crate) fn find(options: &SqliteOptions) -> Result<Place, StoreError> {
    let given = &options.path;
    if given.as_os_str() == ":memory:" {
        return Err(StoreError::not_applied(
            Fault::Invalid,
            "a database in memory cannot be shared by processes; give a path".to_owned(),
        ));
    }
    if options.missing_directory == MissingDirectory::CreatePrivate && given.file_name().is_some() {
        create(directory_of(given))?;
    }
    let path = resolved(given)?;
    let directory = directory_of(&path);
    let exists = path.exists();
    let file_system = FileSystem::of(if exists { &path } else { directory })?;
    filesystem::check(file_system, &path, options.trust)?;
    // Before the permissions: the directory of a mounted file is often not writable, and is not what is to be
    // mended.
    only_path::check(&path)?;
    if exists {
        permitted(&path)?;
    }
    permitted(directory)?;
    let named = std::path::absolute(given).map_err(|error| unusable(given, &error))?;
    Ok(Place {
        path,
        named,
        file_system,
    })
}

/// The path without symbolic links, of a file that need not exist yet: a link to it leads to where it will be
/// made, which is where others look for what lies beside it.
fn resolved(given: &Path) -> Result<PathBuf, StoreError> {
    let mut path = given.to_owned();
    for _ in 0..=LINKS_MAX {
        let Some(file_name) = path.file_name() else {
            return Err(StoreError::not_applied(
                Fault::Invalid,
                format!(
                    "{:?} names no file; give a path such as /var/lib/app/leases.db",
                    path.display()
                ),
            ));
        };
        if file_name.as_bytes().contains(&0) {
            return Err(unusable(given, &ErrorKind::InvalidInput.into()));
        }
        let directory = directory_of(&path);
        let real_directory = directory
            .canonicalize()
            .map_err(|error| unusable(directory, &error))?;
        let real = real_directory.join(file_name);
        match real.read_link() {
            Ok(target) => path = real_directory.join(target),
            // Not there, or no link.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => {
                return Ok(real);
            }
            Err(error) => return Err(unusable(given, &error)),
        }
    }
    Err(StoreError::not_applied(
        Fault::Invalid,
        format!(
            "{} leads through more than {LINKS_MAX} symbolic links; give the path of the file itself",
            given.display()
        ),
    ))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// The answer for a file or directory that takes no writes.
pub(crate) fn read_only(shown: &str) -> StoreError {
    StoreError::not_applied(
        Fault::ReadOnly,
        format!(
            "{shown} is read-only for this user, and SQLite must write the file and beside it; give write \
             permission on the file and its directory, or mount the file system read-write"
        ),
    )
}

/// Asks the kernel without opening: closing a database's descriptor would drop SQLite's locks on it.
fn permitted(path: &Path) -> Result<(), StoreError> {
    let shown = path.display();
    match access(path, Access::READ_OK) {
        Ok(()) => {}
        Err(error) => return Err(unusable(path, &error.into())),
    }
    match access(path, Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) => Err(read_only(&shown.to_string())),
        Err(error) => Err(unusable(path, &error.into())),
    }
}

fn create(directory: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| {
            StoreError::not_applied(
                kind(&error),
                format!(
                    "cannot make the directory {}: {error}; make it, or name another file with --store \
                     sqlite:PATH",
                    directory.display()
                ),
            )
        })
}

fn unusable(path: &Path, error: &std::io::Error) -> StoreError {
    let shown = path.display();
    // Nobody but a shell knows whose folder it stands for; of such a name there may be a folder, but there is
    // none.
    if error.kind() == ErrorKind::NotFound && path.as_os_str().as_bytes().starts_with(b"~") {
        let why = format!(
            "cannot use {shown}: only a shell replaces the tilde; write the path out, as /home/USER/leases.db"
        );
        return StoreError::not_applied(Fault::Invalid, why);
    }
    let way_out = match error.kind() {
        ErrorKind::PermissionDenied => format!("give this user permission on {shown}"),
        ErrorKind::NotFound => format!("if it is not mounted yet, mount it; else make it: mkdir -p {shown}"),
        ErrorKind::NotADirectory => {
            "a part of this path is a file; give a path through directories".to_owned()
        }
        ErrorKind::InvalidFilename => "give a shorter path".to_owned(),
        ErrorKind::InvalidInput => "give a path that a file can have".to_owned(),
        _ => "give another path, or see the disk and the kernel's log".to_owned(),
    };
    StoreError::not_applied(kind(error), format!("cannot use {shown}: {error}; {way_out}"))
}

fn kind(error: &std::io::Error) -> Fault {
    match error.kind() {
        ErrorKind::PermissionDenied => Fault::Forbidden,
        ErrorKind::ReadOnlyFilesystem => Fault::ReadOnly,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Fault::Full,
        ErrorKind::NotADirectory | ErrorKind::InvalidInput | ErrorKind::InvalidFilename => Fault::Invalid,
        _ => Fault::Unreachable,
    }
}
