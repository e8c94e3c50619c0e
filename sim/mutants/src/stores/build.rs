//! Building the tests of the stores in the copy.

use super::plant::StoreCopy;
use crate::Error;
use crate::build::from_the_first_error;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program of a store's tests.
const TESTS: &str = "tests";

/// The programs of tests, by the store; the compiler's messages if there are none.
pub(super) type Built = Result<BTreeMap<&'static str, PathBuf>, String>;

/// Builds the tests of every store: always of all, as what is built of one alone has other features, and would be built anew.
///
/// Without the network: the copy needs nothing that this program was not built from. In small steps that are kept, and without what
/// only a debugger reads: here the same crates are built again and again.
pub(super) fn build(copy: &StoreCopy) -> Result<Built, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let packages = copy
        .stores
        .iter()
        .flat_map(|store| ["--package".to_owned(), format!("tenure-{store}")]);
    let output = Command::new(&cargo)
        .args(["test", "--no-run", "--offline", "--all-features", "--test", TESTS])
        .arg("--message-format=json-render-diagnostics")
        .args(packages)
        .arg("--target-dir")
        .arg(&copy.target)
        .current_dir(&copy.root)
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::system(Path::new(&cargo), &error))?;
    if !output.status.success() {
        return Ok(Err(from_the_first_error(&String::from_utf8_lossy(
            &output.stderr,
        ))));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let artifacts: Vec<(String, PathBuf)> = messages.lines().filter_map(program).collect();
    let mut programs = BTreeMap::new();
    for store in &copy.stores {
        let manifest = format!("/stores/{store}/Cargo.toml");
        let found = artifacts.iter().find(|(path, _)| path.ends_with(&manifest));
        let Some((_, program)) = found else {
            return Ok(Err(format!(
                "cargo tells of no program \"{TESTS}\" of the store {store}"
            )));
        };
        programs.insert(*store, program.clone());
    }
    Ok(Ok(programs))
}

/// The manifest and the program of a message about a program of tests.
fn program(line: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["target"]["name"] != TESTS {
        return None;
    }
    let manifest = message["manifest_path"].as_str()?.replace('\\', "/");
    Some((manifest, message["executable"].as_str()?.into()))
}
