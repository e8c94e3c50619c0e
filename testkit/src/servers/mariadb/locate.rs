//! Which MariaDB to run, and from which data its servers begin.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::layout::servers_dir;

/// Finds `mariadbd`: `TESTKIT_MARIADB`, else what `fetch` unpacked, else the system's.
///
/// # Errors
/// [`Error::NotInstalled`], with the command that installs it. A `TESTKIT_MARIADB` that names no file is an error too.
pub fn mariadb_program() -> Result<PathBuf, Error> {
    let not_installed = |looked| Error::NotInstalled {
        program: "mariadbd",
        looked,
    };
    if let Some(named) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        return match named.is_file() {
            true => Ok(named),
            false => Err(not_installed(vec![format!("{VARIABLE}={}", named.display())])),
        };
    }
    let fetched = servers_dir().join(MARIADB_FOLDER).join("usr/sbin/mariadbd");
    let everywhere = [fetched.clone(), PathBuf::from("/usr/sbin/mariadbd")];
    everywhere
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| not_installed(vec![fetched.display().to_string(), "/usr/sbin".to_owned()]))
}

/// The `usr` folder of a program: where it looks for its messages and its first tables.
pub(crate) fn root_of(program: &Path) -> PathBuf {
    let root = program.parent().and_then(Path::parent);
    root.map_or_else(|| PathBuf::from("/usr"), Path::to_path_buf)
}

/// What makes a data folder.
pub(crate) fn install_program(program: &Path) -> PathBuf {
    root_of(program).join("bin/mariadb-install-db")
}

/// Where the libraries are that were unpacked with the program; the system has the others.
pub(crate) fn library_path(program: &Path) -> OsString {
    let folders = fs::read_dir(root_of(program).join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    let folders = folders
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with("-linux-gnu"));
    let inherited = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let inherited: Vec<PathBuf> = env::split_paths(&inherited)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    env::join_paths(folders.chain(inherited)).unwrap_or_default()
}

/// What the program says of its version, as part of a file's name: data of one version are not another's.
pub(crate) fn version_of(program: &Path) -> Result<String, Error> {
    let mut command = Command::new(program);
    command.args(["--no-defaults", "--version"]);
    let output = command.env("LD_LIBRARY_PATH", library_path(program)).output();
    let output = output.map_err(Error::system("asking mariadbd for its version"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().skip_while(|word| *word != "Ver").nth(1);
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    let version = version.map(|version| version.chars().filter(plain).collect::<String>());
    version.filter(|version| !version.is_empty()).ok_or_else(|| {
        let message = format!(
            "mariadbd does not start: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Error::Fetch(message)
    })
}

/// A data folder that nobody has used, made once and copied for each server: making it takes seconds.
pub(crate) fn initialised(program: &Path) -> Result<PathBuf, Error> {
    Ok(servers_dir().join(format!("mariadb-data-{}", version_of(program)?)))
}

pub(crate) const MARIADB_FOLDER: &str = "mariadb";

const VARIABLE: &str = "TESTKIT_MARIADB";
