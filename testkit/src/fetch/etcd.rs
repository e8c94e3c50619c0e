//! etcd from the system's packages, unpacked and not installed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{say, unpack_as};
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::{ETCD_FOLDER, etcd_in};

/// Installs etcd where it is missing, and returns its path.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_etcd() -> Result<PathBuf, Error> {
    let servers = servers_dir();
    fs::create_dir_all(&servers).map_err(Error::system("making target/servers"))?;
    let turn = File::create(servers.join("fetch.lock")).map_err(Error::system("making a lock file"))?;
    turn.lock().map_err(Error::system("waiting for another fetch"))?;
    let program = etcd_in(&servers);
    if starts(&program).is_ok() {
        say(&format!("etcd is installed: {}", program.display()));
        return Ok(program);
    }
    say("downloading etcd-server (8 MB); it is unpacked, not installed");
    unpack_as(ETCD_FOLDER, &["etcd-server"], |complete| {
        let started = starts(&complete.join("usr/bin/etcd"));
        started.map_err(|error| Error::Fetch(format!("etcd does not start: {error}")))
    })?;
    say(&format!("installed {}", program.display()));
    Ok(program)
}

fn starts(program: &Path) -> Result<(), String> {
    match Command::new(program).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
