//! MySQL, which Debian's stable releases do not have: from its development release, complete with its libraries.

use std::fs;
use std::path::{Path, PathBuf};

use super::mariadb::initialise_mariadb;
use super::{aside_for, debian, say};
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::version_of;

/// Unpacks a MySQL, unless it is there, and returns its `mysqld`, to be named in `TESTKIT_MARIADB`. Nothing else needs it. Which
/// version it is, is Debian's choice of the day.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_mysql() -> Result<PathBuf, Error> {
    let servers = servers_dir();
    let folder = servers.join("mysql");
    let program = folder.join("usr/sbin/mysqld");
    if !program.is_file() || version_of(&program).is_err() {
        install(&servers, &folder)?;
    }
    initialise_mariadb(&program)?;
    say(&format!("MySQL {} is there", version_of(&program)?));
    Ok(program)
}

fn install(servers: &Path, folder: &Path) -> Result<(), Error> {
    let by_hand = "install MySQL, and set TESTKIT_MARIADB to its mysqld";
    if !Path::new("/etc/debian_version").exists() {
        return Err(Error::Fetch(format!(
            "MySQL is fetched on Debian alone; {by_hand}"
        )));
    }
    let (aside, complete) = aside_for(servers, "mysql")?;
    say("downloading MySQL (58 MB with its libraries); it is unpacked, not installed");
    let unpacked = debian::unpack_of("sid", &["mysql-server-core"], &aside, &complete);
    unpacked.map_err(|error| Error::Fetch(format!("{error}; or {by_hand}")))?;
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Error::system("removing an older MySQL"))?;
    }
    fs::rename(&complete, folder).map_err(Error::system("installing MySQL"))?;
    fs::remove_dir_all(&aside).map_err(Error::system("installing MySQL"))
}
