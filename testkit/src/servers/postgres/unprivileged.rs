//! Programs that refuse to run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::error::Error;

/// The user and the group `nobody` of Linux.
const NOBODY: u32 = 65_534;

/// Has `command` run as nobody, if this is root, and gives it `folder`.
///
/// # Errors
/// [`Error::System`] if the folder cannot be given away, [`Error::Fetch`] if nobody could never reach it.
pub(super) fn run_in(command: &mut Command, folder: &Path) -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let closed = folder.ancestors().skip(1).find(|above| {
        fs::metadata(above)
            .is_ok_and(|found| found.uid() != NOBODY && found.permissions().mode() & 0o001 == 0)
    });
    if let Some(closed) = closed {
        return Err(Error::Fetch(format!(
            "PostgreSQL does not run as root, and nobody may not enter {}; set CARGO_TARGET_DIR to a folder that \
             everybody may enter, such as one in /var/tmp",
            closed.display()
        )));
    }
    std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY))
        .map_err(Error::system("giving a folder to nobody"))?;
    run(command);
    Ok(())
}

/// Has `command` run as nobody, if this is root.
pub(super) fn run(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}
