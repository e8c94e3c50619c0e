//! Servers of other releases of Debian than this system's, complete with their libraries.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{aside_for, debian, say};
use crate::error::Error;
use crate::layout::servers_dir;

/// A server, and where it is from.
pub(super) struct OfRelease<'a> {
    /// For people.
    pub(super) name: &'a str,
    pub(super) release: &'a str,
    pub(super) packages: &'a [&'a str],
    /// In the folder of the servers.
    pub(super) folder: &'a str,
    /// What to do where it cannot be had.
    pub(super) by_hand: &'a str,
    pub(super) megabytes: u32,
}

impl OfRelease<'_> {
    /// Downloads it, in place of what is there. It gets its name when it is complete, and `made` has been
    /// done to it.
    pub(super) fn install(&self, made: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
        let (name, by_hand, servers) = (self.name, self.by_hand, servers_dir());
        if !Path::new("/etc/debian_version").exists() {
            return Err(Error::Fetch(format!(
                "{name} is fetched on Debian alone; {by_hand}"
            )));
        }
        let (aside, complete) = aside_for(&servers, self.folder)?;
        say(&format!(
            "downloading {name} ({} MB with its libraries); it is unpacked, not installed",
            self.megabytes
        ));
        let unpacked = debian::unpack_of(self.release, self.packages, &aside, &complete);
        unpacked.map_err(|error| Error::Fetch(format!("{error}; or {by_hand}")))?;
        made(&complete)?;
        super::name(&complete, &aside, &servers.join(self.folder))
    }
}

/// Has programs be started by a script, each by its own loader and with its own libraries, where who starts
/// them knows nothing of these: they stand aside, where nothing looks for a loader.
pub(super) fn give_loaders(complete: &Path, programs: &[&str]) -> Result<(), Error> {
    let doing = || Error::system("giving a program its loader");
    let libraries = complete.join("usr/lib/x86_64-linux-gnu");
    fs::rename(libraries, complete.join("libraries")).map_err(doing())?;
    for program in programs {
        let program = complete.join(program);
        fs::rename(&program, program.with_extension("unpacked")).map_err(doing())?;
        fs::write(&program, STARTER).map_err(doing())?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(doing())?;
    }
    Ok(())
}

/// Stands for a program, and becomes it with its own loader and libraries.
const STARTER: &str = "#!/bin/sh
root=$(dirname \"$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\")
unset LD_LIBRARY_PATH
exec \"$root/libraries/ld-linux-x86-64.so.2\" --library-path \"$root/libraries\" \"$(readlink -f \"$0\").unpacked\" \"$@\"
";
