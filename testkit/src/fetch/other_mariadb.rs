//! The MariaDB of a later release of Debian than most machines have.

use std::path::PathBuf;

use super::mysql::fetched;
use super::other_release::{OfRelease, give_loaders};
use crate::error::Error;

/// Unpacks a MariaDB 11.8, unless it is there, and returns its `mariadbd`, to be named in `TESTKIT_MARIADB`.
/// Nothing else needs it.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_other_mariadb() -> Result<PathBuf, Error> {
    fetched(&MARIADB, "usr/sbin/mariadbd", |complete| {
        give_loaders(
            complete,
            &[
                "usr/sbin/mariadbd",
                "usr/bin/my_print_defaults",
                "usr/bin/resolveip",
            ],
        )
    })
}

const MARIADB: OfRelease<'_> = OfRelease {
    name: "MariaDB 11.8",
    release: "trixie",
    packages: &["mariadb-server-core", "mariadb-client-core"],
    folder: "mariadb-11.8",
    by_hand: "install it, and set TESTKIT_MARIADB to its mariadbd",
    megabytes: 25,
};
