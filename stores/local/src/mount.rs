//! Whether a file is itself a mount.
//!
//! A bind mount of one file (`docker -v FILE:FILE`, a Kubernetes `subPath`) is the same file by another path,
//! and what stands beside it by that path is not what stands beside it by its own: neither a lock nor a log.
//! Nor does a new file that is renamed over it by the one path show by the other.

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::{fs, io};

/// The mounts that this process sees. For kernels before 5.8, and sandboxes whose `statx` tells less.
const MOUNTS_FILE: &str = "/proc/self/mountinfo";

/// Whether the file itself was mounted. Not told by its device: a bind mount may have that of the directory,
/// and a file in an overlay may have another.
///
/// # Errors
/// Where neither the kernel nor its list of mounts tells: mount /proc.
pub fn is_mount(path: &Path) -> io::Result<bool> {
    if let Ok(file) = statx(CWD, path, AtFlags::empty(), StatxFlags::empty())
        && file.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
    {
        return Ok(file.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    }
    let mounts = fs::read(MOUNTS_FILE)?;
    Ok(is_listed(&mounts, &path.canonicalize()?))
}

/// Whether the list of mounts has one at this path: the fifth field of its line, with four characters as
/// octal numbers.
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
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

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
        let mounts = fs::read(MOUNTS_FILE).unwrap();
        for (path, mounted) in [("/proc", true), ("/proc/self/mountinfo", false)] {
            assert_eq!(is_mount(Path::new(path)).unwrap(), mounted, "{path}");
            assert_eq!(is_listed(&mounts, Path::new(path)), mounted, "{path}");
        }
    }
}
