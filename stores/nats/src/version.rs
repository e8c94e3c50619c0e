//! Which servers are too old for what.

use crate::link::Link;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, line};

/// Major, minor and patch.
type Version = (u64, u64, u64);

/// From which one on servers compare with the last message of another subject than the written one.
/// Older ones ignore the header that asks for it and refuse every write: nothing wrong is stored, and nothing at all.
const COMPARES_FROM: Version = (2, 11, 0);

/// From which one on a server that was killed comes up with what it had confirmed. Of those before, 2.10.25, 2.10.26, 2.11.0 and 2.11.1
/// were killed with a new bucket of two records, synced before they were confirmed, and came up with an empty one.
const REMEMBERS_FROM: Version = (2, 11, 2);

/// From which one on a server that has no room does not skip what the others of its cluster have confirmed. Of those before, 2.11.2
/// to 2.11.17 leave it out of their copy, say so in no answer, and give what comes after other numbers than the others do.
const SKIPS_NOTHING_FROM: Version = (2, 12, 0);

impl Link {
    /// Looks at what the connected server says that it is.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] where no fenced write could be stored. Not applied.
    pub(crate) async fn server_compares(&self) -> Result<(), StoreError> {
        let server = self.open().await?.connection.client.server_info();
        if !is_before(&server.version, COMPARES_FROM) {
            return Ok(());
        }
        let why = format!(
            "server {} is NATS {}, and a fence needs 2.11 or later; upgrade every server (leases work from 2.10 on)",
            line(&server.server_name),
            line(&server.version)
        );
        Err(Deed::Read.error(
            Fault::Unsupported,
            Certainty::NotApplied,
            "the fence",
            self.place(),
            why,
        ))
    }
}

/// Whether a killed server of this version may come up without what it had confirmed.
pub(crate) fn may_forget(version: &str) -> bool {
    is_before(version, REMEMBERS_FROM)
}

/// Whether a server of this version may leave out of its copy what a majority has confirmed.
pub(crate) fn may_skip(version: &str) -> bool {
    is_before(version, SKIPS_NOTHING_FROM)
}

/// Whether a version is known to be too old. What cannot be read is not known to be: a fence on it refuses at worst.
fn is_before(version: &str, first: Version) -> bool {
    let mut numbers = version.trim_start_matches('v').split(['.', '-']);
    let mut next = || numbers.next()?.parse::<u64>().ok();
    match (next(), next(), next()) {
        (Some(major), Some(minor), patch) => (major, minor, patch.unwrap_or(0)) < first,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPARES_FROM, is_before, may_forget, may_skip};

    #[test]
    fn versions_before_the_header_are_told_from_those_that_know_it() {
        for old in [
            "2.10.29",
            "2.10.0-RC.1",
            "2.9.25",
            "v2.10.4",
            "2.2",
            "1.99.0",
            "0.9.6",
        ] {
            assert!(is_before(old, COMPARES_FROM), "{old}");
        }
        for known in [
            "2.11.0",
            "2.11.0-RC.1",
            "2.11.0-dev",
            "2.11",
            "2.15.0",
            "2.100.1",
            "3.0.0",
            "v2.12.1",
        ] {
            assert!(!is_before(known, COMPARES_FROM), "{known}");
        }
    }

    #[test]
    fn servers_that_forget_when_they_are_killed_are_known_by_their_patch() {
        for old in ["2.10.29", "2.11.0", "2.11.1", "v2.11.1", "2.11"] {
            assert!(may_forget(old), "{old}");
        }
        for sound in ["2.11.2", "2.11.10", "2.12.0", "2.15.0", "3.0"] {
            assert!(!may_forget(sound), "{sound}");
        }
    }

    #[test]
    fn servers_that_skip_what_they_have_no_room_for_are_known_by_their_minor() {
        for old in ["2.11.2", "2.11.17", "v2.11", "2.10.29"] {
            assert!(may_skip(old), "{old}");
        }
        for sound in ["2.12.0", "2.12", "2.15.0", "3.0"] {
            assert!(!may_skip(sound), "{sound}");
        }
    }

    #[test]
    fn versions_that_cannot_be_read_are_not_called_old() {
        for odd in [
            "",
            ".",
            "2",
            "2.",
            "2.x",
            "dev",
            "two.ten",
            "-1.2",
            "2..10",
            "99999999999999999999.1",
        ] {
            assert!(!is_before(odd, COMPARES_FROM), "{odd}");
        }
    }
}
