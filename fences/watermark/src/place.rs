//! Where a watermark may be: all that can be said before it is locked and read.

use crate::file::{failure, told};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tenure_core::{Fault, FenceError};
use tenure_local::{FileSystem, FileSystemTrust, is_mount};

/// The file itself, found once: what is beside it must be beside it also after a change of directory, and for
/// who comes by a link.
pub(crate) fn found(path: &Path) -> Result<PathBuf, FenceError> {
    let failed = |error| failure(path, &error);
    let Some(name) = path.file_name() else {
        return Err(told(
            Fault::Invalid,
            path,
            "is no file; give a path such as /var/lib/app/marks",
        ));
    };
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        existing => return existing.map_err(failed),
    }
    if path.is_symlink() {
        // Made where the link is, the first claim would replace the link.
        return Err(told(
            Fault::Invalid,
            path,
            "is a link that leads nowhere; give the path of the file itself",
        ));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory
        .unwrap_or(Path::new("."))
        .canonicalize()
        .map_err(failed)?;
    Ok(directory.join(name))
}

/// What is no plain file cannot be replaced by one; and whoever opens a pipe waits for who writes it.
pub(crate) fn must_be_plain(path: &Path) -> Result<(), FenceError> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Err(told(
            Fault::Invalid,
            path,
            "is a directory; give the path of a file in it",
        )),
        Ok(found) if !found.is_file() => Err(told(
            Fault::Invalid,
            path,
            "is no plain file, but a device, a pipe or a socket; give the path of a file",
        )),
        // What else is the matter is told by who opens it.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Each path of a file has a lock of its own, and the first claim by one of them leaves the old marks to the
/// others.
pub(crate) fn must_have_one_path(path: &Path) -> Result<(), FenceError> {
    let Ok(found) = path.metadata() else {
        return Ok(());
    };
    if found.nlink() > 1 {
        return Err(told(
            Fault::Invalid,
            path,
            "has other names (hard links), by which another process may keep its marks there; remove them, or put a \
             copy of it in its place",
        ));
    }
    let mounted = is_mount(path).map_err(|error| {
        let message = format!("may itself be a mount, which cannot be told: {error}; mount /proc");
        told(Fault::Unsupported, path, &message)
    })?;
    if mounted {
        return Err(told(
            Fault::Invalid,
            path,
            "is itself a mount (a bind mount, a container's volume of one file, a subPath): by its other path another \
             process may keep its marks there; mount the directory of the file instead",
        ));
    }
    Ok(())
}

/// A lock that does not reach another machine lets two of them open one file, and each write takes back what
/// the other has raised.
pub(crate) fn must_be_of_this_machine(path: &Path, trust: FileSystemTrust) -> Result<(), FenceError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let file_system = FileSystem::of(if path.exists() { path } else { directory })?;
    must_be_local(file_system, path, trust)
}

fn must_be_local(file_system: FileSystem, path: &Path, trust: FileSystemTrust) -> Result<(), FenceError> {
    let refused = |kind: &str, way_out: &str| {
        let message = format!(
            "is on {kind}, where a lock may not reach another machine, which may keep its marks there, too; {way_out}"
        );
        Err(told(Fault::Unsupported, path, &message))
    };
    match (file_system, trust) {
        (FileSystem::Local(_) | FileSystem::Layered(_) | FileSystem::Memory(_) | FileSystem::Other(_), _)
        | (FileSystem::Program(_), FileSystemTrust::Trusted) => Ok(()),
        (FileSystem::Network(kind), _) => {
            refused(kind, "use a path on a local disk, or the fence of a database")
        }
        (FileSystem::Program(kind), FileSystemTrust::LocalOnly) => refused(
            kind,
            "use a path on a local disk, or say that it is one, if you know it: FileSystemTrust::Trusted, or \
             file:PATH?filesystem=trusted",
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::must_be_local;
    use std::path::Path;
    use tenure_core::{Fault, FenceError};
    use tenure_local::{FileSystem, FileSystemTrust};

    #[test]
    fn a_watermark_on_a_network_file_system_is_refused_and_one_of_a_program_unless_it_is_trusted() {
        let opened = |number, trust| match must_be_local(
            FileSystem::of_number(number),
            Path::new("/srv/marks"),
            trust,
        ) {
            Ok(()) => None,
            Err(FenceError::Store(error)) => Some(error.fault),
            Err(other) => panic!("{other}"),
        };
        let (nfs, fuse, ext4, unknown) = (0x6969, 0x6573_5546, 0xEF53, 0x1234);
        for (number, trust, refused) in [
            (nfs, FileSystemTrust::LocalOnly, true),
            (nfs, FileSystemTrust::Trusted, true),
            (fuse, FileSystemTrust::LocalOnly, true),
            (fuse, FileSystemTrust::Trusted, false),
            (ext4, FileSystemTrust::LocalOnly, false),
            (unknown, FileSystemTrust::LocalOnly, false),
        ] {
            let expected = refused.then_some(Fault::Unsupported);
            assert_eq!(opened(number, trust), expected, "{number:#x}, {trust:?}");
        }
    }
}
