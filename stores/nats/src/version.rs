//! Which servers are too old for what.

use crate::link::Link;
use std::ops::Range;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, line};

/// From which one on servers compare with the last message of another subject than the written one. Older
/// ones ignore the header that asks for it and refuse every write: nothing wrong is stored, and nothing at
/// all.
const COMPARES_FROM: Version = Version(2, 11, 0, Stage::Early);

/// From which one on a server that was killed comes up with what it had confirmed. Of those before, 2.10.25,
/// 2.10.26, 2.11.0 and 2.11.1 were killed with a new bucket of two records, synced before they were
/// confirmed, and came up with an empty one.
const REMEMBERS_FROM: Version = Version(2, 11, 2, Stage::Released);

/// From which one on a server of several copies lacks nothing that the others have confirmed. Of those
/// before, one that has no room takes a snapshot for applied of which it has fetched nothing
/// (nats-io/nats-server#8265), says so in no answer, and gives what comes after other numbers than the others
/// do. Earlier ones elect two leaders of one term (#7698), or count copies of what an earlier leader wrote as
/// its confirmation (#7955).
const KEEPS_ALL_FROM: Version = Version(2, 14, 3, Stage::Released);

/// What keeps all of the line that is mended beside.
const KEEPS_ALL_WITHIN: Range<Version> = Version(2, 12, 12, Stage::Released)..Version(2, 13, 0, Stage::Early);

/// Of one server: major, minor, patch, and whether it is that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Version(u64, u64, u64, Stage);

/// How far a version was when its server was built.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    /// Something stands behind the numbers, as in `2.14.3-RC.1`: it may lack what the release has.
    Early,
    Released,
}

impl Version {
    /// As a server tells it: `2.12.12`, also with more behind it. `None` for what cannot be read.
    pub(crate) fn read(told: &str) -> Option<Self> {
        let (numbers, stage) = match told.trim_start_matches('v').split_once('-') {
            Some((numbers, _behind)) => (numbers, Stage::Early),
            None => (told.trim_start_matches('v'), Stage::Released),
        };
        let mut numbers = numbers.split('.');
        let mut next = || numbers.next()?.parse().ok();
        Some(Self(next()?, next()?, next().unwrap_or(0), stage))
    }

    /// Whether a server of it that is killed may come up without what it had confirmed.
    pub(crate) fn may_forget(self) -> bool {
        self < REMEMBERS_FROM
    }

    /// Whether a copy on a server of it may lack what a majority has confirmed.
    pub(crate) fn may_lack(self) -> bool {
        self < KEEPS_ALL_FROM && !KEEPS_ALL_WITHIN.contains(&self)
    }

    fn compares(self) -> bool {
        self >= COMPARES_FROM
    }
}

impl Link {
    /// Looks at what the connected server says that it is.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] where no fenced write could be stored. Not applied.
    pub(crate) async fn server_compares(&self) -> Result<(), StoreError> {
        let server = self.open().await?.connection.client.server_info();
        // What cannot be read is not known to be too old: a fence on it refuses at worst.
        if Version::read(&server.version).is_none_or(Version::compares) {
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

#[cfg(test)]
mod tests {
    use super::Version;

    fn read(told: &str) -> Version {
        Version::read(told).unwrap_or_else(|| panic!("{told}"))
    }

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
            assert!(!read(old).compares(), "{old}");
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
            assert!(read(known).compares(), "{known}");
        }
    }

    #[test]
    fn servers_that_forget_when_they_are_killed_are_known_by_their_patch() {
        for old in ["2.10.29", "2.11.0", "2.11.1", "v2.11.1", "2.11", "2.11.2-RC.1"] {
            assert!(read(old).may_forget(), "{old}");
        }
        for sound in ["2.11.2", "2.11.10", "2.12.0", "2.15.0", "3.0"] {
            assert!(!read(sound).may_forget(), "{sound}");
        }
    }

    #[test]
    fn servers_that_lack_what_others_have_confirmed_are_known_by_their_line() {
        for old in [
            "2.10.29",
            "2.11.2",
            "2.11.17",
            "v2.11",
            "2.12",
            "2.12.0",
            "2.12.8",
            "2.12.11",
            "2.13.0",
            "2.13.12",
            "2.14.0",
            "2.14.2",
            "v2.14.2",
            "2.13.0-RC.1",
            "2.12.12-RC.1",
            "2.14.3-RC.1",
            "2.14.3-preview.2",
            "v2.14.3-dev",
        ] {
            assert!(read(old).may_lack(), "{old}");
        }
        for sound in [
            "2.12.12",
            "2.12.15",
            "v2.12.12",
            "2.12.13-RC.1",
            "2.14.3",
            "2.14.5",
            "2.14.4-RC.1",
            "2.15.0",
            "3.0",
        ] {
            assert!(!read(sound).may_lack(), "{sound}");
        }
    }

    #[test]
    fn versions_that_cannot_be_read_are_none() {
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
            assert_eq!(Version::read(odd), None, "{odd}");
        }
    }
}
