//! Whether a file is reached by one path only.
//!
//! SQLite keeps its log (`-wal`), the index of the log with the locks (`-shm`) and its journal beside the
//! *path* by which it opened the file. Whoever comes by another path has others: neither sees what the other
//! writes, both could hold one lease, and both write into one file until it is damaged. A symbolic link is no
//! such path, since it is resolved.
//!
//! A hard link shows in the file's count of links to everybody, so it is looked for before each use of an
//! open handle, in the one `stat` that is made there anyway. A mount of the file shows only in its own mount
//! namespace, and there it is looked for before each connection is opened. That is enough, though a mount may
//! come later:
//! - one in another namespace, or at another path of this one, is seen by whoever opens by it;
//! - one of another file over our path makes it another file, which is opened anew, and so looked at;
//! - one of the same file over our path changes nothing for the connections that are open: their logs are
//!   those of everybody who has opened the file by its own path. Whoever opens by the new mount is refused.

use rustix::fs::{FileType, stat};
use std::path::Path;
use tenure_core::{Fault, StoreError};
use tenure_local::is_mount;

/// Refuses an existing file that can be reached by another path, and what is no file: SQLite writes into a
/// device, and leaves a journal beside it. What cannot be looked at passes: it is not there yet, or SQLite
/// cannot open it either.
///
/// # Errors
/// [`Fault::Unsupported`] and [`Fault::Invalid`], in one line with the way out.
pub(crate) fn check(path: &Path) -> Result<(), StoreError> {
    let Ok(file) = stat(path) else { return Ok(()) };
    let shown = path.display();
    let is_what = match FileType::from_raw_mode(file.st_mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some("is a directory; give the path of a file in it"),
        _ => Some("is no plain file, but a device, a pipe or a socket; give the path of a file"),
    };
    if let Some(is_what) = is_what {
        let message = format!("{shown} {is_what}");
        return Err(StoreError::not_applied(Fault::Invalid, message));
    }
    if file.st_nlink > 1 {
        return Err(refusal(&format!(
            "{shown} is one of {} hard links to one file; {WHY}; remove the other links (find / -samefile {shown})",
            file.st_nlink
        )));
    }
    let mounted = is_mount(path).map_err(|error| {
        refusal(&format!(
            "cannot tell whether {shown} is itself a mount: {error}; mount /proc"
        ))
    })?;
    if mounted {
        return Err(refusal(&format!(
            "{shown} is itself a mount (a bind mount, a container's volume of one file, a subPath); {WHY}; mount the \
             directory of the file instead"
        )));
    }
    Ok(())
}

const WHY: &str = "SQLite keeps its log beside the path, so whoever uses another path of the file would not see what is \
                   written by this one, and both could lead";

fn refusal(message: &str) -> StoreError {
    StoreError::not_applied(Fault::Unsupported, message.to_owned())
}
