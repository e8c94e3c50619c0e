//! The MariaDB of a later release of Debian than most machines have, complete with its libraries.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::mariadb::initialise_mariadb;
use super::{aside_for, debian, say};
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::version_of;

/// Unpacks a MariaDB 11.8, unless it is there, and returns its `mariadbd`, to be named in `TESTKIT_MARIADB`. Nothing else needs it.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_other_mariadb() -> Result<PathBuf, Error> {
    let servers = servers_dir();
    let folder = servers.join("mariadb-11.8");
    let program = folder.join("usr/sbin/mariadbd");
    if !program.is_file() || version_of(&program).is_err() {
        install(&servers, &folder)?;
    }
    initialise_mariadb(&program)?;
    say(&format!("MariaDB {} is there", version_of(&program)?));
    Ok(program)
}

fn install(servers: &Path, folder: &Path) -> Result<(), Error> {
    let by_hand = "install it, and set TESTKIT_MARIADB to its mariadbd";
    let (aside, complete) = aside_for(servers, "mariadb-11.8")?;
    say("downloading MariaDB 11.8 (25 MB with its libraries); it is unpacked, not installed");
    let packages = ["mariadb-server-core", "mariadb-client-core"];
    let unpacked = debian::unpack_of("trixie", &packages, &aside, &complete);
    unpacked.map_err(|error| Error::Fetch(format!("{error}; or {by_hand}")))?;
    let doing = || Error::system("installing MariaDB");
    // Aside, where nothing looks for a loader: a script starts these programs, which knows nothing of one.
    fs::rename(
        complete.join("usr/lib/x86_64-linux-gnu"),
        complete.join(LIBRARIES),
    )
    .map_err(doing())?;
    for program in [
        "usr/sbin/mariadbd",
        "usr/bin/my_print_defaults",
        "usr/bin/resolveip",
    ] {
        let program = complete.join(program);
        fs::rename(&program, program.with_extension("unpacked")).map_err(doing())?;
        fs::write(&program, STARTER).map_err(doing())?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(doing())?;
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Error::system("removing a MariaDB that does not start"))?;
    }
    fs::rename(&complete, folder).map_err(doing())?;
    fs::remove_dir_all(&aside).map_err(doing())
}

const LIBRARIES: &str = "libraries";

/// Stands for a program, and becomes it with its own loader and libraries.
const STARTER: &str = "#!/bin/sh
root=$(dirname \"$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\")
unset LD_LIBRARY_PATH
exec \"$root/libraries/ld-linux-x86-64.so.2\" --library-path \"$root/libraries\" \"$(readlink -f \"$0\").unpacked\" \"$@\"
";
