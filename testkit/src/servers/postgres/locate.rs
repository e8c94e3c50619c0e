//! Which PostgreSQL and PgBouncer to run.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::layout::servers_dir;

/// Finds the folder of `postgres` and `initdb`: `TESTKIT_POSTGRES`, else what `fetch` unpacked, else the
/// newest that the system has, else the search path.
///
/// # Errors
/// [`Error::NotInstalled`], with the command that installs it. A `TESTKIT_POSTGRES` without the two programs
/// is an error too.
pub fn postgres_programs() -> Result<PathBuf, Error> {
    let complete = |folder: &PathBuf| folder.join("postgres").is_file() && folder.join("initdb").is_file();
    if let Some(named) = named(POSTGRES_VARIABLE) {
        return Some(named.clone()).filter(complete).ok_or_else(|| {
            not_installed(
                "postgres",
                vec![format!("{POSTGRES_VARIABLE}={}", named.display())],
            )
        });
    }
    let roots = [servers_dir().join(POSTGRES_FOLDER), PathBuf::from("/")];
    let found = roots
        .iter()
        .find_map(|root| newest(&root.join("usr/lib/postgresql")).filter(complete));
    found.or_else(|| on_the_path().find(complete)).ok_or_else(|| {
        let looked = roots
            .iter()
            .map(|root| root.join("usr/lib/postgresql").display().to_string());
        not_installed("postgres", looked.chain(["PATH".to_owned()]).collect())
    })
}

/// Has a command find `psql` and the like on its search path, with their libraries.
///
/// # Errors
/// As [`postgres_programs`].
pub fn with_postgres_programs(command: &mut Command) -> Result<(), Error> {
    let programs = std::iter::once(postgres_programs()?);
    let path = env::join_paths(programs.chain(on_the_path())).unwrap_or_default();
    command.env("PATH", path).env("LD_LIBRARY_PATH", library_path());
    Ok(())
}

/// Finds `pgbouncer`: `TESTKIT_PGBOUNCER`, else what `fetch` unpacked, else the system's.
///
/// # Errors
/// [`Error::NotInstalled`], with the command that installs it.
pub fn pgbouncer_program() -> Result<PathBuf, Error> {
    let is_file = |path: &PathBuf| path.is_file();
    if let Some(named) = named(PGBOUNCER_VARIABLE) {
        return Some(named.clone()).filter(is_file).ok_or_else(|| {
            not_installed(
                "pgbouncer",
                vec![format!("{PGBOUNCER_VARIABLE}={}", named.display())],
            )
        });
    }
    let fetched = servers_dir().join(POSTGRES_FOLDER).join("usr/sbin/pgbouncer");
    let everywhere = [fetched.clone(), PathBuf::from("/usr/sbin/pgbouncer")].into_iter();
    everywhere
        .chain(on_the_path().map(|folder| folder.join("pgbouncer")))
        .find(is_file)
        .ok_or_else(|| {
            not_installed(
                "pgbouncer",
                vec![fetched.display().to_string(), "PATH".to_owned()],
            )
        })
}

/// Where the libraries are that were unpacked with the programs; the system has the others.
pub(super) fn library_path() -> OsString {
    let libraries = servers_dir().join(POSTGRES_FOLDER).join("usr/lib");
    let folders = fs::read_dir(libraries).into_iter().flatten().flatten();
    let folders = folders
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with("-linux-gnu"));
    let inherited = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let inherited: Vec<PathBuf> = env::split_paths(&inherited)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    env::join_paths(folders.chain(inherited)).unwrap_or_default()
}

/// The `bin` of the highest version below `folder`.
fn newest(folder: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(folder).ok()?.flatten();
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    versions
        .map(|entry| entry.path())
        .max_by_key(version)
        .map(|path| path.join("bin"))
}

fn named(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn on_the_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect::<Vec<_>>().into_iter()
}

fn not_installed(program: &'static str, looked: Vec<String>) -> Error {
    Error::NotInstalled { program, looked }
}

pub(crate) const POSTGRES_FOLDER: &str = "postgresql";

const POSTGRES_VARIABLE: &str = "TESTKIT_POSTGRES";
const PGBOUNCER_VARIABLE: &str = "TESTKIT_PGBOUNCER";
