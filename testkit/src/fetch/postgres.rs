//! PostgreSQL and PgBouncer, from the distribution's own packages.

use std::path::Path;

use super::{say, unpack_as};
use crate::error::Error;
use crate::servers::{POSTGRES_FOLDER, pgbouncer_program, postgres_programs};

/// Unpacks both below `servers`, unless both are there or installed already. Called while nobody else
/// fetches.
pub(super) fn fetch() -> Result<(), Error> {
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
    say("downloading PostgreSQL and PgBouncer (1 to 60 MB); they are unpacked, not installed");
    unpack_as(POSTGRES_FOLDER, &["postgresql", "pgbouncer"], |_| Ok(()))?;
    let programs = postgres_programs()?;
    say(&format!(
        "unpacked {}, {}",
        programs.display(),
        pgbouncer_program()?.display()
    ));
    Ok(())
}
