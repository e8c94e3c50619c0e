//! Which server programs to run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::redis::RedisBuild;
use crate::error::Error;
use crate::layout::servers_dir;

/// Where libfaketime is unpacked.
pub(crate) const FAKETIME_FOLDER: &str = "faketime";

/// Where Galera is unpacked.
pub(crate) const GALERA_FOLDER: &str = "galera";

/// Where nftables is unpacked.
pub(crate) const NFTABLES_FOLDER: &str = "nftables";

/// Finds `mongod`: `TESTKIT_MONGOD`, else what `fetch` installed, else the search path.
///
/// # Errors
/// [`Error::NotInstalled`], with the command that installs it. A `TESTKIT_MONGOD` that names no file is an
/// error too: falling back would test another server than the one asked for.
pub fn mongod_program() -> Result<PathBuf, Error> {
    find("mongod", VARIABLE, mongod_in(&servers_dir()))
}

/// Finds the server of a build: `TESTKIT_REDIS` or `TESTKIT_VALKEY`, else what `fetch` installed, else the
/// search path.
///
/// # Errors
/// As [`mongod_program`].
pub fn redis_program(build: RedisBuild) -> Result<PathBuf, Error> {
    let fetched = redis_in(&servers_dir(), build);
    match build {
        RedisBuild::Redis => find("redis-server", "TESTKIT_REDIS", fetched),
        RedisBuild::Valkey => find("valkey-server", "TESTKIT_VALKEY", fetched),
    }
}

/// Finds `etcd`: `TESTKIT_ETCD`, else what `fetch` installed, else the search path.
///
/// # Errors
/// As [`mongod_program`].
pub fn etcd_program() -> Result<PathBuf, Error> {
    find("etcd", "TESTKIT_ETCD", etcd_in(&servers_dir()))
}

/// Finds `nats-server`: `TESTKIT_NATS`, else what `fetch` installed, else the search path. Older ones than
/// 2.10 do not do.
///
/// # Errors
/// As [`mongod_program`].
pub fn nats_program() -> Result<PathBuf, Error> {
    find("nats-server", "TESTKIT_NATS", nats_in(&servers_dir()))
}

/// Finds libfaketime, which gives one process a clock of its own: `TESTKIT_FAKETIME`, else what `fetch`
/// unpacked.
///
/// # Errors
/// As [`mongod_program`].
pub fn faketime_library() -> Result<PathBuf, Error> {
    let unpacked = servers_dir().join(FAKETIME_FOLDER).join("usr/lib");
    // The one for programs with threads: with the other, two that look at the clock at once may see an old
    // one.
    let library = "faketime/libfaketimeMT.so.1";
    // Below the folder of the machine's architecture.
    let fetched = std::fs::read_dir(&unpacked)
        .ok()
        .into_iter()
        .flatten()
        .flatten()
        .map(|architecture| architecture.path().join(library))
        .find(|path| path.is_file());
    find(
        "libfaketime",
        "TESTKIT_FAKETIME",
        fetched.unwrap_or_else(|| unpacked.join(library)),
    )
}

/// Finds Galera, with which MariaDB servers make a cluster: `TESTKIT_GALERA`, else what `fetch` unpacked,
/// else the system's.
///
/// # Errors
/// As [`mongod_program`].
pub fn galera_library() -> Result<PathBuf, Error> {
    let library = "usr/lib/galera/libgalera_smm.so";
    let fetched = servers_dir().join(GALERA_FOLDER).join(library);
    let systems = Path::new("/").join(library);
    let found = match systems.is_file() && !fetched.is_file() {
        true => systems,
        false => fetched,
    };
    find("libgalera_smm.so", "TESTKIT_GALERA", found)
}

/// A command that runs `nft`, by which the kernel is told what to drop: `TESTKIT_NFT`, else what `fetch`
/// unpacked, else the system's.
///
/// # Errors
/// As [`mongod_program`].
pub fn nft_command() -> Result<Command, Error> {
    let folder = servers_dir().join(NFTABLES_FOLDER).join("usr");
    let fetched = folder.join("sbin/nft");
    let systems = Path::new("/usr/sbin/nft");
    let found = match systems.is_file() && !fetched.is_file() {
        true => systems,
        false => &fetched,
    };
    let program = find("nft", "TESTKIT_NFT", found.to_owned())?;
    let mut command = Command::new(&program);
    if program == fetched {
        // Below the folder of the machine's architecture.
        let libraries = std::fs::read_dir(folder.join("lib")).ok().into_iter().flatten();
        let libraries: Vec<PathBuf> = libraries.flatten().map(|folder| folder.path()).collect();
        let joined = env::join_paths(libraries);
        command.env("LD_LIBRARY_PATH", joined.unwrap_or_default());
    }
    Ok(command)
}

fn find(program: &'static str, variable: &str, fetched: PathBuf) -> Result<PathBuf, Error> {
    let not_installed = |looked| Error::NotInstalled { program, looked };
    if let Some(named) = env::var_os(variable).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        return if named.is_file() {
            Ok(named)
        } else {
            Err(not_installed(vec![format!("{variable}={}", named.display())]))
        };
    }
    if fetched.is_file() {
        return Ok(fetched);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|program| program.is_file())
        .ok_or_else(|| {
            not_installed(vec![
                variable.to_owned(),
                fetched.display().to_string(),
                "PATH".to_owned(),
            ])
        })
}

pub(crate) fn mongod_in(servers: &Path) -> PathBuf {
    servers.join(MONGOD_FOLDER).join("mongod")
}

pub(crate) fn etcd_in(servers: &Path) -> PathBuf {
    servers.join(ETCD_FOLDER).join("usr/bin/etcd")
}

pub(crate) fn redis_in(servers: &Path, build: RedisBuild) -> PathBuf {
    match build {
        RedisBuild::Redis => servers.join(REDIS_FOLDER).join("usr/bin/redis-server"),
        RedisBuild::Valkey => servers.join(VALKEY_FOLDER).join("valkey-server"),
    }
}

pub(crate) fn nats_in(servers: &Path) -> PathBuf {
    servers.join(NATS_FOLDER).join("nats-server")
}

/// Named after the version, so that a newer one is installed beside it and not over it.
pub(crate) const MONGOD_FOLDER: &str = "mongod-6.0.5";

/// Whatever version the system's packages have.
pub(crate) const REDIS_FOLDER: &str = "redis";

/// Whatever version the system's packages have.
pub(crate) const ETCD_FOLDER: &str = "etcd";

pub(crate) const NATS_FOLDER: &str = "nats-2.15.0";

pub(crate) const VALKEY_FOLDER: &str = "valkey-9.1.2";

const VARIABLE: &str = "TESTKIT_MONGOD";
