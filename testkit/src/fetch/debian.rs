//! Packages of the distribution, unpacked into a folder instead of installed: no root, no service, no trace
//! elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;

/// Downloads `packages`, with whatever they need that this system lacks, and unpacks them into `into`.
///
/// `apt-get` only downloads here, with lists of its own in `aside`, so the system stays as it is.
pub(super) fn unpack(packages: &[&str], aside: &Path, into: &Path) -> Result<(), Error> {
    let configuration = configure(aside, "Dir::State::status \"/var/lib/dpkg/status\";\n")?;
    fetched(packages, aside, into, &configuration)
}

/// The same of another release of Debian, with everything down to the loader, as for a system that has
/// nothing: what is unpacked runs by itself. It comes from where this system has its packages from, and is
/// signed by whom it trusts.
pub(super) fn unpack_of(release: &str, packages: &[&str], aside: &Path, into: &Path) -> Result<(), Error> {
    let [status, sources] = ["status", "sources.list"].map(|name| aside.join(name));
    fs::write(&status, "").map_err(Error::system("writing an empty list of packages"))?;
    let line = format!("deb {} {release} main\n", mirror()?);
    fs::write(&sources, line).map_err(Error::system("writing sources.list"))?;
    let own = format!(
        "Dir::State::status \"{}\";\nDir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::preferences \"/dev/null\";\nDir::Etc::preferencesparts \"/dev/null\";\n",
        status.display(),
        sources.display()
    );
    let configuration = configure(aside, &own)?;
    fetched(packages, aside, into, &configuration)
}

/// Where this system has Debian's packages from.
fn mirror() -> Result<String, Error> {
    let mut asking = Command::new("apt-get");
    asking.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let told = asking.stdin(Stdio::null()).output();
    let told = told.map_err(Error::system("asking apt-get for its sources"))?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let found = told
        .lines()
        .find(|line| line.trim_end_matches('/').ends_with("/debian"));
    found
        .map(str::to_owned)
        .ok_or_else(|| Error::Fetch("apt-get has no source of Debian's packages".to_owned()))
}

fn fetched(packages: &[&str], aside: &Path, into: &Path, configuration: &Path) -> Result<(), Error> {
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.arg("-qq").args(arguments).env("APT_CONFIG", configuration);
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

/// Writes a configuration that keeps all state of `apt-get` in `aside`, but for what `own` says.
fn configure(aside: &Path, own: &str) -> Result<PathBuf, Error> {
    for folder in ["lists/partial", "cache/archives/partial", "state"] {
        fs::create_dir_all(aside.join(folder)).map_err(Error::system("making folders for apt-get"))?;
    }
    let aside_shown = aside.display();
    let text = format!(
        "Dir::State \"{aside_shown}/state\";\nDir::State::lists \"{aside_shown}/lists\";\n{own}\
         Dir::Cache \"{aside_shown}/cache\";\n\
         Acquire::Retries \"3\";\n\
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
