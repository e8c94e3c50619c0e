//! Which file systems hold what one machine alone shall use, and which may not.

use std::path::Path;
use tenure_core::{Fault, StoreError};

/// Which file systems are taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FileSystemTrust {
    /// All but those that are known to be a network's or a program's (FUSE). The default. One that is in no
    /// list here is taken, since network file systems are few and known; `tenure doctor` warns of it.
    #[default]
    LocalOnly,
    /// FUSE too: the operator knows that it is local and passes locks and shared memory on. Network file
    /// systems stay refused.
    Trusted,
}

/// What a file system is worth for what one machine alone shall use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileSystem {
    /// On a disk of this machine.
    Local(&'static str),
    /// Layers over each other, as a container's own root is: another container has another file by the same
    /// path.
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
    #[must_use]
    pub fn of_number(number: u64) -> Self {
        KNOWN
            .iter()
            .find(|(known, _)| *known == number)
            .map_or(Self::Other(number), |(_, kind)| *kind)
    }

    /// The file system of an existing file or directory. It is not opened: closing any descriptor of a
    /// database would drop the locks that SQLite holds on it for the whole process.
    ///
    /// # Errors
    /// [`Fault::Unreachable`].
    pub fn of(path: &Path) -> Result<Self, StoreError> {
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
    use super::FileSystem;
    use std::path::Path;

    #[test]
    fn the_file_system_of_this_directory_is_told() {
        assert!(FileSystem::of(Path::new(".")).is_ok());
        assert_eq!(
            FileSystem::of(Path::new("/dev/shm")).ok(),
            Some(FileSystem::Memory("tmpfs"))
        );
    }
}
