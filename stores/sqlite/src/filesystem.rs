//! Which file systems may hold the file, and which may not.

use crate::options::FileSystemTrust;
use std::path::Path;
use tenure_core::{Fault, StoreError};

/// What a file system is worth for leases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileSystem {
    /// On a disk of this machine.
    Local(&'static str),
    /// Layers over each other, as a container's own root is: another container has another file by the same path.
    Layered(&'static str),
    /// In memory: gone with the next reboot, and all its records with it.
    Memory(&'static str),
    /// A program serves it; where the data really is, nobody can tell from here.
    Program(&'static str),
    /// Shared between machines.
    Network(&'static str),
    /// Not in the list. Taken for local: network file systems are few and known.
    Other(u64),
}

/// The numbers that the kernel gives to file systems (`statfs(2)`), as far as they matter here.
const KNOWN: &[(u64, FileSystem)] = &[
    (0xEF53, FileSystem::Local("ext4")),
    (0x5846_5342, FileSystem::Local("XFS")),
    (0x9123_683E, FileSystem::Local("btrfs")),
    (0x2FC1_2FC1, FileSystem::Local("ZFS")),
    (0xF2F5_2010, FileSystem::Local("F2FS")),
    (0xCA45_1A4E, FileSystem::Local("bcachefs")),
    (0x794C_7630, FileSystem::Layered("overlayfs")),
    (0x0102_1994, FileSystem::Memory("tmpfs")),
    (0x8584_58F6, FileSystem::Memory("ramfs")),
    (0x6573_5546, FileSystem::Program("FUSE")),
    (0x6969, FileSystem::Network("NFS")),
    (0x517B, FileSystem::Network("SMB")),
    (0xFF53_4D42, FileSystem::Network("CIFS")),
    (0xFE53_4D42, FileSystem::Network("SMB2")),
    (0x0102_1997, FileSystem::Network("9p")),
    (0x00C3_6400, FileSystem::Network("Ceph")),
    (0x0BD0_0BD0, FileSystem::Network("Lustre")),
    (0x4750_4653, FileSystem::Network("GPFS")),
    (0x5346_414F, FileSystem::Network("AFS")),
    (0x6B41_4653, FileSystem::Network("AFS")),
    (0x7375_7245, FileSystem::Network("Coda")),
    (0x7461_636F, FileSystem::Network("OCFS2")),
    (0x0116_1970, FileSystem::Network("GFS2")),
    (0x564C, FileSystem::Network("NCP")),
    (0x1983_0326, FileSystem::Network("BeeGFS")),
    (0xAAD7_AAEA, FileSystem::Network("PanFS")),
    (0x2003_0528, FileSystem::Network("OrangeFS")),
    (0x6163_6673, FileSystem::Network("ACFS")),
    (0xBEEF_DEAD, FileSystem::Network("StorNext")),
    (0x786F_4256, FileSystem::Network("vboxsf")),
    (0xBACB_ACBC, FileSystem::Network("vmhgfs")),
    (0x7C7C_6673, FileSystem::Network("prl_fs")),
];

impl FileSystem {
    /// The file system with this number.
    pub(crate) fn of_number(number: u64) -> Self {
        KNOWN
            .iter()
            .find(|(known, _)| *known == number)
            .map_or(Self::Other(number), |(_, kind)| *kind)
    }

    /// The file system of an existing file or directory. It is not opened: closing any descriptor of a
    /// database would drop the locks that SQLite holds on it for the whole process.
    pub(crate) fn of(path: &Path) -> Result<Self, StoreError> {
        let answer = rustix::fs::statfs(path).map_err(|error| {
            StoreError::not_applied(
                Fault::Unreachable,
                format!(
                    "cannot tell the file system of {}: {error}; see that it exists",
                    path.display()
                ),
            )
        })?;
        // The field is signed on some machines; the numbers are 32 bits wide on all.
        #[expect(
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "the type of the field differs between machines; its low 32 bits are the number"
        )]
        let number = u64::from(answer.f_type as u32);
        Ok(Self::of_number(number))
    }

    /// Refuses what cannot keep leases safely.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for a network file system, and for one served by a program unless trusted.
    pub(crate) fn check(self, path: &Path, trust: FileSystemTrust) -> Result<(), StoreError> {
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
        match (self, trust) {
            (Self::Local(_) | Self::Layered(_) | Self::Memory(_) | Self::Other(_), _)
            | (Self::Program(_), FileSystemTrust::Trusted) => Ok(()),
            (Self::Network(kind), _) => refused(
                kind,
                "use a path on a local disk, or a store made for several machines such as mongodb://",
            ),
            (Self::Program(kind), FileSystemTrust::LocalOnly) => refused(
                kind,
                "use a path on a local disk, or add ?filesystem=trusted if you know that it is one",
            ),
        }
    }
}

impl std::fmt::Display for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Local(kind)
            | Self::Layered(kind)
            | Self::Memory(kind)
            | Self::Program(kind)
            | Self::Network(kind) => f.write_str(kind),
            Self::Other(number) => write!(f, "a file system of number {number:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(number: u64, trust: FileSystemTrust) -> Result<(), StoreError> {
        FileSystem::of_number(number).check(Path::new("/srv/x/tenure.db"), trust)
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

    #[test]
    fn the_file_system_of_this_directory_is_told() {
        assert!(FileSystem::of(Path::new(".")).is_ok());
        assert_eq!(
            FileSystem::of(Path::new("/dev/shm")).ok(),
            Some(FileSystem::Memory("tmpfs"))
        );
    }
}
