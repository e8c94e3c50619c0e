//! Whose new files are: what root puts in the place of a service's file, or beside it, is still the
//! service's.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

const ROOT: u32 = 0;

const PERMISSIONS: u32 = 0o777;
const OWNERS_ALONE: u32 = 0o700;
const GROUPS: u32 = 0o070;

/// Who owns the marks, and may open them.
pub(crate) struct Ownership {
    user: u32,
    group: u32,
    /// None where there are no marks yet: then it is their directory's.
    mode: Option<u32>,
}

impl Ownership {
    /// That of the marks at `path`, and where there are none that of their directory.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let of = |found: &Metadata, mode| Self {
            user: found.uid(),
            group: found.gid(),
            mode,
        };
        match path.metadata() {
            Ok(marks) => Ok(of(&marks, Some(marks.mode() & PERMISSIONS))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let directory = path.parent().unwrap_or(Path::new("/"));
                Ok(of(&directory.metadata()?, None))
            }
            Err(error) => Err(error),
        }
    }

    /// The same, and whoever owns the file may surely write it.
    pub(crate) fn writable(self) -> Self {
        let mode = self.mode.map(|mode| mode | 0o600);
        Self { mode, ..self }
    }

    /// Makes a file of this ownership where there is none. It follows no link: else root would give away
    /// whatever the link leads to.
    pub(crate) fn make(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if let Some(mode) = self.mode {
            // Its group is not yet who it will be: never wider than it may be, also not for a moment.
            options.mode(mode & OWNERS_ALONE);
        }
        let file = options.open(path)?;
        let by_root = file.metadata()?.uid() == ROOT;
        if by_root || self.mode.is_some() {
            // Not every file system has owners, and not everybody may give a file to a group.
            let _as_it_is_then = fchown(&file, by_root.then_some(self.user), Some(self.group));
        }
        if let Some(mode) = self.mode {
            let made = file.metadata()?;
            // What one group may, another may not.
            let mode = if made.gid() == self.group {
                mode
            } else {
                mode & !GROUPS
            };
            if made.mode() & PERMISSIONS != mode {
                // On a file system that decides that by itself, it stays as that has it.
                let _as_it_is_then = file.set_permissions(Permissions::from_mode(mode));
            }
        }
        Ok(file)
    }
}
