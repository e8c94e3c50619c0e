//! Galera, with which MariaDB servers make a cluster, from the distribution's own packages.

use std::path::Path;

use super::{say, unpack_as};
use crate::error::Error;
use crate::servers::{GALERA_FOLDER, galera_library};

/// Unpacks it below `servers`, unless it is there or installed already. What it links to, MariaDB links to as
/// well, and has brought where the system lacks it. Called while nobody else fetches.
pub(super) fn fetch() -> Result<(), Error> {
    if let Ok(library) = galera_library() {
        say(&format!("Galera is installed: {}", library.display()));
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(Error::Fetch(
            "Galera is fetched from Debian's or Ubuntu's packages; elsewhere install it and set TESTKIT_GALERA to \
             libgalera_smm.so"
                .to_owned(),
        ));
    }
    say("downloading Galera (1 MB); it is unpacked, not installed");
    unpack_as(GALERA_FOLDER, &["galera-4"], |_| Ok(()))?;
    say(&format!("unpacked {}", galera_library()?.display()));
    Ok(())
}
