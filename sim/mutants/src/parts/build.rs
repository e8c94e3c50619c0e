//! Building the tests of the parts in the copy.

use super::Part;
use super::plant::PartCopy;
use crate::Error;
use crate::build::from_the_first_error;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program of a crate's tests.
const TESTS: &str = "tests";

/// The programs of a part's tests; the compiler's messages if there are none.
pub(super) type Built = Result<Vec<PathBuf>, String>;

/// Builds the tests of a part, and of those that are built with it.
///
/// Without the network: the copy needs nothing that this program was not built from. In small steps that are
/// kept, and without what only a debugger reads: here the same crates are built again and again.
pub(super) fn build(copy: &PartCopy, part: &Part) -> Result<Built, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let together = copy
        .parts
        .iter()
        .filter(|other| other.arguments == part.arguments);
    let output = Command::new(&cargo)
        .args(["test", "--no-run", "--offline", "--test", TESTS])
        .args(part.arguments)
        .arg("--message-format=json-render-diagnostics")
        .args(together.flat_map(|part| ["--package", part.package]))
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
    let manifest = format!("/{}/Cargo.toml", part.folder);
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut programs: Vec<PathBuf> = messages
        .lines()
        .filter_map(|line| program(line, &manifest))
        .collect();
    // They are told of as they get ready, in any order.
    programs.sort_unstable();
    if programs.is_empty() {
        return Ok(Err(format!(
            "cargo tells of no program of tests of {}",
            part.package
        )));
    }
    Ok(Ok(programs))
}

/// The program of a message about one of tests, if it is that of the crate with this manifest.
fn program(line: &str, manifest: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let found = message["manifest_path"].as_str()?.replace('\\', "/");
    if !found.ends_with(manifest) || message["profile"]["test"] != true {
        return None;
    }
    Some(message["executable"].as_str()?.into())
}
