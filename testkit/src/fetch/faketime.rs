//! A library that gives one process a clock of its own, from the system's packages, unpacked and not
//! installed.

use std::fs::{self, File};
use std::path::PathBuf;

use super::{say, unpack_as};
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::{FAKETIME_FOLDER, faketime_library};

/// Unpacks libfaketime where it is missing, and returns the library's path.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_faketime() -> Result<PathBuf, Error> {
    let servers = servers_dir();
    fs::create_dir_all(&servers).map_err(Error::system("making target/servers"))?;
    let turn = File::create(servers.join("fetch.lock")).map_err(Error::system("making a lock file"))?;
    turn.lock().map_err(Error::system("waiting for another fetch"))?;
    if let Ok(library) = faketime_library() {
        say(&format!("libfaketime is installed: {}", library.display()));
        return Ok(library);
    }
    say("downloading libfaketime (1 MB); it is unpacked, not installed");
    unpack_as(FAKETIME_FOLDER, &["libfaketime"], |_| Ok(()))?;
    faketime_library()
}
