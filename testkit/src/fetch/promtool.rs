//! Prometheus' own program for testing rules of alerts, from the system's packages, unpacked and not
//! installed.

use std::fs;
use std::path::PathBuf;

use super::{aside_for, debian, say, starts};
use crate::error::Error;
use crate::layout::servers_dir;

/// Unpacks `promtool`, unless it is there, and returns its path.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_promtool() -> Result<PathBuf, Error> {
    let servers = servers_dir();
    let folder = servers.join(FOLDER);
    let program = folder.join("promtool");
    if starts(&program).is_ok() {
        return Ok(program);
    }
    let doing = || Error::system("installing promtool");
    let (aside, complete) = aside_for(&servers, FOLDER)?;
    say("downloading promtool (25 MB with the rest of Prometheus); it is unpacked, not installed");
    debian::unpack(&["prometheus"], &aside, &complete)?;
    // Nothing of the rest is needed, which is ten times as large.
    fs::create_dir_all(&folder).map_err(doing())?;
    fs::rename(complete.join("usr/bin/promtool"), &program).map_err(doing())?;
    fs::remove_dir_all(&aside).map_err(doing())?;
    starts(&program).map_err(|error| Error::Fetch(format!("promtool does not start: {error}")))?;
    Ok(program)
}

const FOLDER: &str = "promtool";
