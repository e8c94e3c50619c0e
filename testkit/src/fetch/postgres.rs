//! PostgreSQL and PgBouncer, from the distribution's own packages.

use std::fs;
use std::path::Path;

use super::{debian, say};
use crate::error::Error;
use crate::servers::{POSTGRES_FOLDER, pgbouncer_program, postgres_programs};

/// Unpacks both below `servers`, unless both are there or installed already. Called while nobody else fetches.
pub(super) fn fetch(servers: &Path) -> Result<(), Error> {
    if let (Ok(programs), Ok(pooler)) = (postgres_programs(), pgbouncer_program()) {
        say(&format!(
            "PostgreSQL is installed: {}, {}",
            programs.display(),
            pooler.display()
        ));
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(Error::Fetch(
            "PostgreSQL and PgBouncer are fetched from Debian's or Ubuntu's packages; elsewhere install them and set \
             TESTKIT_POSTGRES to the folder of `postgres` and `initdb`, TESTKIT_PGBOUNCER to `pgbouncer`"
                .to_owned(),
        ));
    }
    let aside = servers.join("incoming-postgresql");
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(Error::system("removing a broken download"))?;
    }
    let complete = aside.join("complete");
    fs::create_dir_all(&complete).map_err(Error::system("making a download folder"))?;
    say("downloading PostgreSQL and PgBouncer (1 to 60 MB); they are unpacked, not installed");
    debian::unpack(&["postgresql", "pgbouncer"], &aside, &complete)?;
    let folder = servers.join(POSTGRES_FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Error::system("removing an older PostgreSQL"))?;
    }
    fs::rename(&complete, &folder).map_err(Error::system("installing PostgreSQL"))?;
    fs::remove_dir_all(&aside).map_err(Error::system("installing PostgreSQL"))?;
    let programs = postgres_programs()?;
    say(&format!(
        "unpacked {}, {}",
        programs.display(),
        pgbouncer_program()?.display()
    ));
    Ok(())
}
