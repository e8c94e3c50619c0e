//! The MariaDB of a later release of Debian than most machines have, complete with its libraries.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::mysql::fetched;
use super::other_release::OfRelease;
use crate::error::Error;

/// Unpacks a MariaDB 11.8, unless it is there, and returns its `mariadbd`, to be named in `TESTKIT_MARIADB`. Nothing else needs it.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_other_mariadb() -> Result<PathBuf, Error> {
    fetched(&MARIADB, "usr/sbin/mariadbd", give_loaders)
}

const MARIADB: OfRelease<'_> = OfRelease {
    name: "MariaDB 11.8",
    release: "trixie",
    packages: &["mariadb-server-core", "mariadb-client-core"],
    folder: "mariadb-11.8",
    by_hand: "install it, and set TESTKIT_MARIADB to its mariadbd",
    megabytes: 25,
};

/// A script starts these programs, which knows nothing of a loader: the libraries stand aside, where nothing looks for one.
fn give_loaders(complete: &Path) -> Result<(), Error> {
    let doing = || Error::system("installing MariaDB");
    let libraries = complete.join("usr/lib/x86_64-linux-gnu");
    fs::rename(libraries, complete.join(LIBRARIES)).map_err(doing())?;
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
    Ok(())
}

const LIBRARIES: &str = "libraries";

/// Stands for a program, and becomes it with its own loader and libraries.
const STARTER: &str = "#!/bin/sh
root=$(dirname \"$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\")
unset LD_LIBRARY_PATH
exec \"$root/libraries/ld-linux-x86-64.so.2\" --library-path \"$root/libraries\" \"$(readlink -f \"$0\").unpacked\" \"$@\"
";
