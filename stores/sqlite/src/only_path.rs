//! Whether a file is reached by one path only.
//!
//! SQLite keeps its log (`-wal`), the index of the log with the locks (`-shm`) and its journal beside the *path* by which
//! it opened the file. Whoever comes by another path has others: neither sees what the other writes, both could hold
//! one lease, and both write into one file until it is damaged. A symbolic link is no such path, since it is resolved.
//!
//! A hard link shows in the file's count of links to everybody, so it is looked for before each use of an open handle,
//! in the one `stat` that is made there anyway. A mount of the file shows only in its own mount namespace, and there it
//! is looked for before each connection is opened. That is enough, though a mount may come later:
//! - one in another namespace, or at another path of this one, is seen by whoever opens by it;
//! - one of another file over our path makes it another file, which is opened anew, and so looked at;
//! - one of the same file over our path changes nothing for the connections that are open: their logs are those of
//!   everybody who has opened the file by its own path. Whoever opens by the new mount is refused.

use rustix::fs::{AtFlags, CWD, FileType, StatxAttributes, StatxFlags, stat, statx};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tenure_core::{Fault, StoreError};

/// The mounts that this process sees. For kernels before 5.8, and sandboxes whose `statx` tells less.
const MOUNTS_FILE: &str = "/proc/self/mountinfo";

/// Refuses an existing file that can be reached by another path, and what is no file: SQLite writes into a device, and leaves a
/// journal beside it. What cannot be looked at passes: it is not there yet, or SQLite cannot open it either.
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
    if is_mount(path)? {
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

/// Whether the file itself was mounted. Not told by its device: a bind mount may have that of the directory, and a file in
/// an overlay may have another.
fn is_mount(path: &Path) -> Result<bool, StoreError> {
    if let Ok(file) = statx(CWD, path, AtFlags::empty(), StatxFlags::empty())
        && file.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
    {
        return Ok(file.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    }
    let untold = |error: std::io::Error| {
        refusal(&format!(
            "cannot tell whether {} is itself a mount: {error} ({MOUNTS_FILE}); mount /proc",
            path.display()
        ))
    };
    let mounts = std::fs::read(MOUNTS_FILE).map_err(untold)?;
    Ok(is_listed(&mounts, &path.canonicalize().map_err(untold)?))
}

/// Whether the list of mounts has one at this path: the fifth field of its line, with four characters as octal numbers.
fn is_listed(mounts: &[u8], path: &Path) -> bool {
    let escaped: Vec<u8> = path
        .as_os_str()
        .as_bytes()
        .iter()
        .flat_map(|byte| match byte {
            b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
            byte => vec![*byte],
        })
        .collect();
    let mut lines = mounts.split(|byte| *byte == b'\n');
    lines.any(|line| line.split(|byte| *byte == b' ').nth(4) == Some(&escaped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_file_is_found_in_the_kernels_list() {
        let mounts = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            90 22 254:0 /srv/leases.db /app/my\\040own\\134leases.db rw,relatime - ext4 /dev/vda rw\n\
            91 22 254:0 /srv/data /data rw,relatime - ext4 /dev/vda rw\n";
        for (path, listed) in [
            ("/app/my own\\leases.db", true),
            ("/app/my", false),
            ("/srv/leases.db", false),
            ("/data/leases.db", false),
            ("/data", true),
        ] {
            assert_eq!(is_listed(mounts, Path::new(path)), listed, "{path}");
        }
    }

    #[test]
    fn the_list_and_the_kernel_agree_on_what_is_mounted_here() {
        let mounts = std::fs::read(MOUNTS_FILE).unwrap();
        for (path, mounted) in [("/proc", true), ("/proc/self/mountinfo", false)] {
            assert_eq!(is_mount(Path::new(path)), Ok(mounted), "{path}");
            assert_eq!(is_listed(&mounts, Path::new(path)), mounted, "{path}");
        }
    }
}
