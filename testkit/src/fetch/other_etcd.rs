//! The etcd of Debian's development release: most others have one that is years old.

use std::fs;
use std::path::{Path, PathBuf};

use super::{aside_for, debian, say, starts};
use crate::error::Error;
use crate::layout::servers_dir;

/// Unpacks an etcd, unless it is there, and returns its path, to be named in `TESTKIT_ETCD`. Nothing else needs it. Which version it
/// is, is Debian's choice of the day.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_other_etcd() -> Result<PathBuf, Error> {
    let servers = servers_dir();
    let folder = servers.join("other-etcd");
    let program = folder.join("usr/bin/etcd");
    if starts(&program).is_err() {
        install(&servers, &folder)?;
        starts(&program).map_err(|error| Error::Fetch(format!("etcd does not start: {error}")))?;
    }
    say(&format!("etcd is there: {}", program.display()));
    Ok(program)
}

fn install(servers: &Path, folder: &Path) -> Result<(), Error> {
    let by_hand = "install it, and set TESTKIT_ETCD to it";
    let (aside, complete) = aside_for(servers, "other-etcd")?;
    say("downloading a newer etcd (20 MB); it is unpacked, not installed");
    let unpacked = debian::unpack_of("sid", &["etcd-server"], &aside, &complete);
    unpacked.map_err(|error| Error::Fetch(format!("{error}; or {by_hand}")))?;
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Error::system("removing an etcd that does not start"))?;
    }
    fs::rename(&complete, folder).map_err(Error::system("installing etcd"))?;
    fs::remove_dir_all(&aside).map_err(Error::system("installing etcd"))
}
