//! Which file systems may hold the file, and which may not.

use std::path::Path;
use tenure_core::{Fault, StoreError};
use tenure_local::{FileSystem, FileSystemTrust};

/// Refuses what cannot keep leases safely.
///
/// # Errors
/// [`Fault::Unsupported`] for a network file system, and for one served by a program unless trusted.
pub(crate) fn check(file_system: FileSystem, path: &Path, trust: FileSystemTrust) -> Result<(), StoreError> {
    let refused = |kind: &str, way_out: &str| {
        Err(StoreError::not_applied(
            Fault::Unsupported,
            format!(
                "{} is on {kind}, where SQLite's shared memory and locks do not reach other machines, so \
                 two of them could hold one lease; {way_out}",
                path.display()
            ),
        ))
    };
    match (file_system, trust) {
        (FileSystem::Local(_) | FileSystem::Layered(_) | FileSystem::Memory(_) | FileSystem::Other(_), _)
        | (FileSystem::Program(_), FileSystemTrust::Trusted) => Ok(()),
        (FileSystem::Network(kind), _) => refused(
            kind,
            "use a path on a local disk, or a store made for several machines such as mongodb://",
        ),
        (FileSystem::Program(kind), FileSystemTrust::LocalOnly) => refused(
            kind,
            "use a path on a local disk, or add ?filesystem=trusted if you know that it is one",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(number: u64, trust: FileSystemTrust) -> Result<(), StoreError> {
        check(
            FileSystem::of_number(number),
            Path::new("/srv/x/tenure.db"),
            trust,
        )
    }

    #[test]
    fn every_network_file_system_is_refused_even_when_trusted() {
        for number in [
            0x6969,
            0x517B,
            0xFF53_4D42,
            0xFE53_4D42,
            0x0102_1997,
            0x00C3_6400,
            0x0BD0_0BD0,
            0x4750_4653,
            0x5346_414F,
            0x7461_636F,
            0x0116_1970,
            0x786F_4256,
        ] {
            for trust in [FileSystemTrust::LocalOnly, FileSystemTrust::Trusted] {
                let error = verdict(number, trust).unwrap_err();
                assert_eq!(error.fault, Fault::Unsupported, "{number:#x}");
                assert!(error.message.contains("local disk"), "{}", error.message);
            }
        }
        assert!(
            verdict(0x6969, FileSystemTrust::LocalOnly)
                .unwrap_err()
                .message
                .contains("NFS")
        );
    }

    #[test]
    fn fuse_is_refused_unless_trusted() {
        let error = verdict(0x6573_5546, FileSystemTrust::LocalOnly).unwrap_err();
        assert!(error.message.contains("FUSE"), "{}", error.message);
        assert!(error.message.contains("filesystem=trusted"), "{}", error.message);
        assert!(verdict(0x6573_5546, FileSystemTrust::Trusted).is_ok());
    }

    #[test]
    fn local_file_systems_are_taken() {
        for number in [0xEF53, 0x5846_5342, 0x9123_683E, 0x794C_7630, 0x0102_1994, 0x1234] {
            assert!(verdict(number, FileSystemTrust::LocalOnly).is_ok(), "{number:#x}");
        }
    }
}
