//! Which `mongod` to run.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::layout::servers_dir;

/// Finds `mongod`: `TESTKIT_MONGOD`, else what `fetch` installed, else the search path.
///
/// # Errors
/// [`Error::NotInstalled`], with the command that installs it. A `TESTKIT_MONGOD` that names no file is an error
/// too: falling back would test another server than the one asked for.
pub fn mongod_program() -> Result<PathBuf, Error> {
    if let Some(named) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        return if named.is_file() {
            Ok(named)
        } else {
            Err(not_installed(vec![format!("{VARIABLE}={}", named.display())]))
        };
    }
    let fetched = mongod_in(&servers_dir());
    if fetched.is_file() {
        return Ok(fetched);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join("mongod"))
        .find(|program| program.is_file())
        .ok_or_else(|| {
            not_installed(vec![
                VARIABLE.to_owned(),
                fetched.display().to_string(),
                "PATH".to_owned(),
            ])
        })
}

pub(crate) fn mongod_in(servers: &Path) -> PathBuf {
    servers.join(MONGOD_FOLDER).join("mongod")
}

fn not_installed(looked: Vec<String>) -> Error {
    Error::NotInstalled {
        program: "mongod",
        looked,
    }
}

/// Named after the version, so that a newer one is installed beside it and not over it.
pub(crate) const MONGOD_FOLDER: &str = "mongod-6.0.5";

const VARIABLE: &str = "TESTKIT_MONGOD";
