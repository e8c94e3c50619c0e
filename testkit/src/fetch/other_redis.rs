//! The Redis of a later release of Debian than most machines have.

use std::path::PathBuf;

use super::other_release::{OfRelease, give_loaders};
use super::{say, starts};
use crate::error::Error;
use crate::layout::servers_dir;

/// Unpacks a Redis 8, unless it is there, and returns its `redis-server`, to be named in `TESTKIT_REDIS`.
/// Nothing else needs it.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_other_redis() -> Result<PathBuf, Error> {
    let program = servers_dir().join(REDIS.folder).join(PROGRAM);
    if starts(&program).is_err() {
        REDIS.install(|complete| give_loaders(complete, &[PROGRAM]))?;
        starts(&program).map_err(|error| Error::Fetch(format!("Redis 8 does not start: {error}")))?;
    }
    say(&format!("Redis 8 is there: {}", program.display()));
    Ok(program)
}

const PROGRAM: &str = "usr/bin/redis-server";

const REDIS: OfRelease<'_> = OfRelease {
    name: "Redis 8",
    release: "trixie",
    packages: &["redis-tools", "redis-server"],
    folder: "redis-8",
    by_hand: "install it, and set TESTKIT_REDIS to its redis-server",
    megabytes: 10,
};
