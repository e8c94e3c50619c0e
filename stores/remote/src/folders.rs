//! Folders of the servers' machines.

use std::path::Path;

/// Whether what a server writes to this folder may be gone after a crash of its machine, or go while it runs.
/// No server tells the kind of its disk: these are where Linux has memory, and where systems remove files
/// when they start, or after some days.
#[must_use]
pub fn is_emptied(folder: impl AsRef<Path>) -> bool {
    EMPTIED.iter().any(|emptied| folder.as_ref().starts_with(emptied))
}

const EMPTIED: [&str; 6] = ["/dev/shm", "/run", "/var/run", "/var/lock", "/tmp", "/var/tmp"];

#[cfg(test)]
mod tests {
    use super::is_emptied;

    #[test]
    fn folder_is_known_by_what_it_is_in_and_not_by_the_beginning_of_its_name() {
        for emptied in [
            "/tmp",
            "/tmp/nats/jetstream",
            "/var/tmp/redis",
            "/dev/shm/x",
            "/run/x/",
        ] {
            assert!(is_emptied(emptied), "{emptied}");
        }
        for kept in [
            "/tmpfiles/redis",
            "/var/lib/redis",
            "/data/tmp",
            "/runs/nats",
            "tmp",
            "/",
        ] {
            assert!(!is_emptied(kept), "{kept}");
        }
    }
}
