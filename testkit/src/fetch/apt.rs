//! Packages of the system that only root can install.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;

/// Whether system packages may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apt {
    /// If this is root and the system has `apt-get`.
    AsRoot,
    /// Never: tell the command instead.
    Never,
}

impl Apt {
    /// Installs packages, or fails with one line that says how to.
    pub(super) fn install(self, why: &str, packages: &[&str]) -> Result<(), Error> {
        let packages = packages.join(" ");
        let by_hand = format!("{why}; run `apt-get install -y --no-install-recommends {packages}` as root");
        let able = rustix::process::geteuid().is_root() && Path::new("/usr/bin/apt-get").exists();
        if self == Apt::Never || !able {
            return Err(Error::Fetch(by_hand));
        }
        super::say(&format!(
            "{why}; installing {packages} with apt-get, as this is root (--no-apt forbids it)"
        ));
        // The lists of a bare machine are empty, those of an old one name versions that are gone.
        let install = || run(&format!("install -y --no-install-recommends {packages}"));
        if install() || (run("update") && install()) {
            Ok(())
        } else {
            Err(Error::Fetch(by_hand))
        }
    }
}

fn run(arguments: &str) -> bool {
    let mut apt = Command::new("/usr/bin/apt-get");
    apt.args(["-qq", "-o", "Acquire::Retries=3"])
        .args(arguments.split(' '))
        .env("DEBIAN_FRONTEND", "noninteractive");
    apt.stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
