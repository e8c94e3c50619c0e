//! A socket in the file system: one process serves it, and removes it when it ends.

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the folder is tried, while another process has it: taking a socket is a matter of microseconds.
const TRIES_MAX: u32 = 250;

/// Pause before it is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// A socket's file, removed when this is dropped, if it is still the same.
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another's, where somebody has removed this one meanwhile.
        if self
            .path
            .symlink_metadata()
            .is_ok_and(|found| identity(&found) == self.identity)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path`, in the place of a socket that was left behind by a killed process, too.
pub(super) fn listen(path: &Path) -> Result<(UnixListener, SocketFile)> {
    // Of two that find the same one left behind, the second would remove what the first serves there.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let _alone = alone_in(folder.unwrap_or(Path::new(".")))?;
    if let Ok(found) = path.symlink_metadata() {
        // Whatever it is, it is somebody's: what is no socket refuses a connection just as one that nobody
        // serves.
        if !found.file_type().is_socket() {
            let what = "a file that is no socket is there";
            return Err(Error::new(ErrorKind::AlreadyExists, what));
        }
        // One that is served answers, and is left alone.
        if UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            std::fs::remove_file(path)?;
        }
    }
    let listener = UnixListener::bind(path)?;
    let file = SocketFile {
        path: path.to_owned(),
        identity: identity(&path.symlink_metadata()?),
    };
    Ok((listener, file))
}

/// The folder, locked against every other `tenure` for as long as this lives; or as it is, where somebody
/// else keeps it locked: whoever may read a folder may lock it, and is not to keep anybody from work.
fn alone_in(folder: &Path) -> Result<File> {
    let folder = File::open(folder)?;
    for _ in 0..TRIES_MAX {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(TRY_AGAIN),
            // It is, or its file system has no such locks.
            Ok(()) | Err(_) => break,
        }
    }
    Ok(folder)
}

fn identity(of: &Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}
