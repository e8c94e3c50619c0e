//! Which servers a fence can write on.

use crate::link::Link;
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, line};

/// From which one on, major and minor, servers compare with the last message of another subject than the written one.
/// Older ones ignore the header that asks for it and refuse every write: nothing wrong is stored, and nothing at all.
const SERVER_MIN: (u64, u64) = (2, 11);

impl Link {
    /// Looks at what the connected server says that it is.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] where no fenced write could be stored. Not applied.
    pub(super) async fn server_compares(&self) -> Result<(), StoreError> {
        let server = self.open().await?.connection.client.server_info();
        if !is_too_old(&server.version) {
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

/// Whether a version is known to be too old. What cannot be read is not known to be: a fence on it refuses at worst.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split(['.', '-']);
    let mut next = || numbers.next()?.parse::<u64>().ok();
    match (next(), next()) {
        (Some(major), Some(minor)) => (major, minor) < SERVER_MIN,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_too_old;

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
            assert!(is_too_old(old), "{old}");
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
            assert!(!is_too_old(known), "{known}");
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
            assert!(!is_too_old(odd), "{odd}");
        }
    }
}
