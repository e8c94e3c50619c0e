//! The etcd of Debian's development release: most others have one that is years old.

use std::path::PathBuf;

use super::other_release::OfRelease;
use super::{say, starts};
use crate::error::Error;
use crate::layout::servers_dir;

/// Unpacks an etcd, unless it is there, and returns its path, to be named in `TESTKIT_ETCD`. Nothing else
/// needs it. Which version it is, is Debian's choice of the day.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_other_etcd() -> Result<PathBuf, Error> {
    let program = servers_dir().join(ETCD.folder).join("usr/bin/etcd");
    if starts(&program).is_err() {
        ETCD.install(|_complete| Ok(()))?;
        starts(&program).map_err(|error| Error::Fetch(format!("etcd does not start: {error}")))?;
    }
    say(&format!("etcd is there: {}", program.display()));
    Ok(program)
}

const ETCD: OfRelease<'_> = OfRelease {
    name: "a newer etcd",
    release: "sid",
    packages: &["etcd-server"],
    folder: "other-etcd",
    by_hand: "install it, and set TESTKIT_ETCD to it",
    megabytes: 20,
};
