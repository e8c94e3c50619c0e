//! Getting and unpacking packages of the system. Nothing is installed, so no service starts, and no root is needed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;

/// Unpacks the newest versions of `packages` into `root`, beside which there is room for downloads.
pub(super) fn unpack(root: &Path, packages: &[&str]) -> Result<(), Error> {
    let aside = root.with_extension("packages");
    for folder in ["state/lists/partial", "cache/archives/partial", "debs"] {
        fs::create_dir_all(aside.join(folder)).map_err(Error::system("making a folder for packages"))?;
    }
    // The system's lists may be missing or name versions that are gone; then lists of our own are made.
    let done = download(&aside, packages, None) || {
        let settings = settings(&aside)?;
        run(apt(&aside, Some(&settings)).args(["-qq", "update"]))
            && download(&aside, packages, Some(&settings))
    };
    if !done {
        return Err(Error::Fetch(format!(
            "apt-get could not download {}; install a Redis server by yourself and set TESTKIT_REDIS to it",
            packages.join(" ")
        )));
    }
    let found = fs::read_dir(aside.join("debs")).map_err(Error::system("reading the downloaded packages"))?;
    for package in found.flatten() {
        if !run(Command::new("dpkg-deb").arg("-x").arg(package.path()).arg(root)) {
            return Err(Error::Fetch(format!(
                "dpkg-deb could not unpack {}",
                package.path().display()
            )));
        }
    }
    fs::remove_dir_all(&aside).map_err(Error::system("removing the downloaded packages"))
}

fn download(aside: &Path, packages: &[&str], settings: Option<&Path>) -> bool {
    let mut download = apt(aside, settings);
    run(download
        .args(["-qq", "download"])
        .args(packages)
        .current_dir(aside.join("debs")))
}

/// Lists and packages of our own, for whoever may not write the system's.
fn settings(aside: &Path) -> Result<std::path::PathBuf, Error> {
    let folder = aside.display();
    let text = format!(
        "Dir::State \"{folder}/state\";\nDir::State::lists \"{folder}/state/lists\";\n\
         Dir::State::status \"/var/lib/dpkg/status\";\nDir::Cache \"{folder}/cache\";\n\
         APT::Sandbox::User \"\";\nDebug::NoLocking \"1\";\nAcquire::Languages \"none\";\n"
    );
    let file = aside.join("apt.conf");
    fs::write(&file, text).map_err(Error::system("writing apt's settings"))?;
    Ok(file)
}

fn apt(aside: &Path, settings: Option<&Path>) -> Command {
    let mut apt = Command::new("apt-get");
    apt.current_dir(aside).env("DEBIAN_FRONTEND", "noninteractive");
    // As root it would else try another user, who may not write here, and say so.
    apt.args(["-o", "APT::Sandbox::User="]);
    if let Some(settings) = settings {
        apt.env("APT_CONFIG", settings);
    }
    apt
}

fn run(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
