//! Which MariaDB, or which MySQL in its place, to run, and from which data its servers begin.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::layout::servers_dir;

/// Finds `mariadbd`: `TESTKIT_MARIADB`, which may name a `mysqld` as well, else what `fetch` unpacked, else
/// the system's.
///
/// # Errors
/// [`Error::NotInstalled`], with the command that installs it. A `TESTKIT_MARIADB` that names no file is an
/// error too.
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

/// The command that runs `what`, which came with `program`, with the libraries that were unpacked with them;
/// the system has the others. A program of another system came with its own loader, too, and with every
/// library.
pub(super) fn loaded(what: &Path, program: &Path) -> Command {
    let libraries = entries(&root_of(program).join("lib"), |name| name.ends_with("-linux-gnu"));
    let loader = libraries.iter().find_map(|folder| {
        entries(folder, |name| name.starts_with("ld-linux"))
            .into_iter()
            .next()
    });
    let joined = |folders: Vec<PathBuf>| env::join_paths(folders).unwrap_or_default();
    if let Some(loader) = loader {
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(joined(libraries)).arg(what);
        command.env_remove("LD_LIBRARY_PATH");
        return command;
    }
    let inherited = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let inherited = env::split_paths(&inherited).filter(|path| !path.as_os_str().is_empty());
    let mut command = Command::new(what);
    command.env(
        "LD_LIBRARY_PATH",
        joined(libraries.into_iter().chain(inherited).collect()),
    );
    command
}

/// What a folder holds whose name is such.
fn entries(folder: &Path, such: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| such(&entry.file_name().to_string_lossy()));
    entries.map(|entry| entry.path()).collect()
}

/// What the program says of its version, as part of a file's name: data of one version are not another's.
pub(crate) fn version_of(program: &Path) -> Result<String, Error> {
    let mut command = loaded(program, program);
    let output = command.args(["--no-defaults", "--version"]).output();
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
