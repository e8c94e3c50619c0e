//! Galera, with which MariaDB servers make a cluster, from the distribution's own packages.

use std::fs;
use std::path::Path;

use super::{aside_for, debian, say};
use crate::error::Error;
use crate::servers::{GALERA_FOLDER, galera_library};

/// Unpacks it below `servers`, unless it is there or installed already. What it links to, MariaDB links to as well, and has
/// brought where the system lacks it. Called while nobody else fetches.
pub(super) fn fetch(servers: &Path) -> Result<(), Error> {
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
    let (aside, complete) = aside_for(servers, GALERA_FOLDER)?;
    say("downloading Galera (1 MB); it is unpacked, not installed");
    debian::unpack(&["galera-4"], &aside, &complete)?;
    let folder = servers.join(GALERA_FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Error::system("removing an older Galera"))?;
    }
    fs::rename(&complete, &folder).map_err(Error::system("installing Galera"))?;
    fs::remove_dir_all(&aside).map_err(Error::system("installing Galera"))?;
    say(&format!("unpacked {}", galera_library()?.display()));
    Ok(())
}
