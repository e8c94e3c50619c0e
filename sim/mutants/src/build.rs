use crate::{Copy, Error};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package and the program that checks.
const CHECKING_PROGRAM: &str = "tenure-sim";

/// The package whose tests show that planting changes nothing by itself.
const TESTED_CRATE: &str = "tenure-core";

/// Most lines of the compiler's messages that are passed on.
const MESSAGE_LINES_MAX: usize = 60;

/// Builds the copy's `tenure-sim`, optimised, and says where it is.
///
/// Without the network: the copy needs nothing that this program was not built from.
///
/// # Errors
/// [`Error::DoesNotCompile`] with the compiler's messages; [`Error::System`] if there is no cargo.
pub fn build(copy: &Copy) -> Result<PathBuf, Error> {
    let arguments = ["build", "--release", "--offline", "--package", CHECKING_PROGRAM];
    cargo(copy, &arguments)?.map_err(Error::DoesNotCompile)?;
    let program = format!("{CHECKING_PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    Ok(copy.target.join("release").join(program))
}

/// Runs the core's own tests in the copy, with no bug switched on.
///
/// # Errors
/// [`Error::TestsFailWithoutBugs`] with what they said; [`Error::System`] if there is no cargo.
pub fn test(copy: &Copy) -> Result<(), Error> {
    cargo(copy, &["test", "--offline", "--package", TESTED_CRATE])?.map_err(Error::TestsFailWithoutBugs)
}

/// Runs cargo in the copy, with no bug switched on; what it said if it failed.
fn cargo(copy: &Copy, arguments: &[&str]) -> Result<Result<(), String>, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let output = Command::new(&cargo)
        .args(arguments)
        .arg("--target-dir")
        .arg(&copy.target)
        .current_dir(&copy.root)
        .env(crate::SWITCH, "0")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::system(Path::new(&cargo), &error))?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let mut messages = String::from_utf8_lossy(&output.stdout).into_owned();
    messages.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(Err(from_the_first_error(&messages)))
}

/// The copy is not linted: its warnings are many, and mean nothing.
pub(crate) fn from_the_first_error(messages: &str) -> String {
    let lines: Vec<&str> = messages.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.starts_with("error") || *line == "failures:")
        .unwrap_or(0);
    let last = lines.len().min(first + MESSAGE_LINES_MAX);
    lines[first..last].join("\n")
}
