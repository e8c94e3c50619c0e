//! Packages of the distribution, unpacked into a folder instead of installed: no root, no service, no trace elsewhere.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;

/// Downloads `packages`, with whatever they need that this system lacks, and unpacks them into `into`.
///
/// `apt-get` only downloads here, with lists of its own in `aside`, so the system stays as it is.
pub(super) fn unpack(packages: &[&str], aside: &Path, into: &Path) -> Result<(), Error> {
    let configuration = configure(aside)?;
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.arg("-qq").args(arguments).env("APT_CONFIG", &configuration);
        run("apt-get", apt)
    };
    apt(&["update"])?;
    let mut download = vec!["install", "-y", "--no-install-recommends", "--download-only"];
    download.extend(packages);
    apt(&download)?;
    let archives =
        fs::read_dir(aside.join("cache/archives")).map_err(Error::system("reading the downloads"))?;
    for archive in archives.flatten().map(|entry| entry.path()) {
        if archive.extension().is_some_and(|end| end == "deb") {
            let mut unpacking = Command::new("dpkg-deb");
            unpacking.arg("-x").arg(&archive).arg(into);
            run("dpkg-deb", unpacking)?;
        }
    }
    Ok(())
}

/// Writes a configuration that keeps all state of `apt-get` in `aside`, but for what the system has installed.
fn configure(aside: &Path) -> Result<std::path::PathBuf, Error> {
    for folder in ["lists/partial", "cache/archives/partial", "state"] {
        fs::create_dir_all(aside.join(folder)).map_err(Error::system("making folders for apt-get"))?;
    }
    let aside_shown = aside.display();
    let text = format!(
        "Dir::State \"{aside_shown}/state\";\nDir::State::lists \"{aside_shown}/lists\";\n\
         Dir::State::status \"/var/lib/dpkg/status\";\nDir::Cache \"{aside_shown}/cache\";\n\
         APT::Sandbox::User \"\";\nDebug::NoLocking \"1\";\nAcquire::Languages \"none\";\n"
    );
    let path = aside.join("apt.conf");
    fs::write(&path, text).map_err(Error::system("writing apt.conf"))?;
    Ok(path)
}

fn run(name: &str, mut command: Command) -> Result<(), Error> {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(Error::system(format!("running {name}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Fetch(format!("{name} failed ({status}); see above")))
    }
}
