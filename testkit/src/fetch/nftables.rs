//! The program that tells the kernel which packets to drop, from the system's packages, unpacked and not
//! installed.

use std::fs::{self, File};
use std::path::PathBuf;

use super::{say, unpack_as};
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::{NFTABLES_FOLDER, nft_command};

/// Unpacks nftables where it is missing, and returns the program's path.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_nftables() -> Result<PathBuf, Error> {
    let servers = servers_dir();
    fs::create_dir_all(&servers).map_err(Error::system("making target/servers"))?;
    let turn = File::create(servers.join("fetch.lock")).map_err(Error::system("making a lock file"))?;
    turn.lock().map_err(Error::system("waiting for another fetch"))?;
    if let Ok(program) = starts() {
        say(&format!("nftables is installed: {}", program.display()));
        return Ok(program);
    }
    say("downloading nftables (1 MB); it is unpacked, not installed");
    unpack_as(NFTABLES_FOLDER, &["nftables"], |_| Ok(()))?;
    let program = starts().map_err(|error| Error::Fetch(format!("nft does not start: {error}")))?;
    say(&format!("unpacked {}", program.display()));
    Ok(program)
}

fn starts() -> Result<PathBuf, String> {
    let mut command = nft_command().map_err(|error| error.to_string())?;
    let program = PathBuf::from(command.get_program());
    match command.arg("--version").output() {
        Ok(output) if output.status.success() => Ok(program),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
