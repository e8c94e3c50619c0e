use crate::{Copy, Error};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package and the program that checks.
const CHECKING_PROGRAM: &str = "tenure-sim";

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
    cargo(copy, &arguments, None)?;
    let program = format!("{CHECKING_PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    Ok(copy.target.join("release").join(program))
}

/// Runs cargo in the copy, with this bug switched on.
pub(crate) fn cargo(copy: &Copy, arguments: &[&str], switched_on: Option<usize>) -> Result<(), Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(&cargo);
    command
        .args(arguments)
        .arg("--target-dir")
        .arg(&copy.target)
        .current_dir(&copy.root)
        .env(crate::SWITCH, switched_on.unwrap_or(0).to_string())
        .stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|error| Error::system(Path::new(&cargo), &error))?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(Error::DoesNotCompile(from_the_first_error(&messages)))
}

/// The copy is not linted: its warnings are many, and mean nothing.
fn from_the_first_error(messages: &str) -> String {
    let lines: Vec<&str> = messages.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.starts_with("error"))
        .unwrap_or(0);
    let last = lines.len().min(first + MESSAGE_LINES_MAX);
    lines[first..last].join("\n")
}
