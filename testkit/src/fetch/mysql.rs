//! MySQL, which Debian's stable releases do not have: from its development release, complete with its
//! libraries.

use std::path::{Path, PathBuf};

use super::mariadb::initialise_mariadb;
use super::other_release::OfRelease;
use super::say;
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::version_of;

/// Unpacks a MySQL, unless it is there, and returns its `mysqld`, to be named in `TESTKIT_MARIADB`. Nothing
/// else needs it. Which version it is, is Debian's choice of the day.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_mysql() -> Result<PathBuf, Error> {
    fetched(&MYSQL, "usr/sbin/mysqld", |_complete| Ok(()))
}

const MYSQL: OfRelease<'_> = OfRelease {
    name: "MySQL",
    release: "sid",
    packages: &["mysql-server-core"],
    folder: "mysql",
    by_hand: "install MySQL, and set TESTKIT_MARIADB to its mysqld",
    megabytes: 58,
};

/// The program of a server of either family, with the data that its servers begin with.
pub(super) fn fetched(
    server: &OfRelease<'_>,
    program: &str,
    made: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let program = servers_dir().join(server.folder).join(program);
    if !program.is_file() || version_of(&program).is_err() {
        server.install(made)?;
    }
    initialise_mariadb(&program)?;
    say(&format!("{} is there: {}", server.name, version_of(&program)?));
    Ok(program)
}
