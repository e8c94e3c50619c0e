//! MariaDB, from the distribution's own packages.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;

use super::{say, unpack_as};
use crate::error::Error;
use crate::layout::servers_dir;
use crate::servers::{MARIADB_FOLDER, SqlFamily, initialised, mariadb_program, version_of};

/// Unpacks it below `servers`, unless it is there or installed already, and makes its first data. Called
/// while nobody else fetches.
pub(super) fn fetch() -> Result<(), Error> {
    if let Ok(program) = mariadb_program()
        && version_of(&program).is_ok()
    {
        say(&format!("MariaDB is installed: {}", program.display()));
        return initialise_mariadb(&program);
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(Error::Fetch(
            "MariaDB is fetched from Debian's or Ubuntu's packages; elsewhere install it and set TESTKIT_MARIADB to mariadbd"
                .to_owned(),
        ));
    }
    say("downloading MariaDB (9 MB); it is unpacked, not installed");
    unpack_as(
        MARIADB_FOLDER,
        &["mariadb-server-core", "mariadb-client-core"],
        |_| Ok(()),
    )?;
    let program = mariadb_program()?;
    initialise_mariadb(&program)?;
    say(&format!("unpacked {}", program.display()));
    Ok(())
}

/// Makes the data folder that servers begin with, unless it is there. Whoever comes meanwhile waits.
///
/// # Errors
/// Why it could not be made.
pub(crate) fn initialise_mariadb(program: &Path) -> Result<(), Error> {
    let data = initialised(program)?;
    if data.exists() {
        return Ok(());
    }
    let turn = File::create(data.with_extension("lock")).map_err(Error::system("making a lock file"))?;
    turn.lock().map_err(Error::system("waiting for another set-up"))?;
    if data.exists() {
        return Ok(());
    }
    let aside = servers_dir().join("mariadb-data-incoming");
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(Error::system("removing a broken set-up"))?;
    }
    let users = aside.with_extension("sql");
    fs::write(&users, USERS).map_err(Error::system("writing the users"))?;
    let mut command = SqlFamily::of(program)?.initialising(program, &aside, &users);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(Error::system("making the first data of MariaDB or MySQL"))?;
    if !output.status.success() {
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let tail: Vec<&str> = said.lines().rev().take(10).collect();
        return Err(Error::Fetch(format!(
            "{} made no data ({}): {}",
            program.display(),
            output.status,
            tail.into_iter().rev().collect::<Vec<_>>().join("; ")
        )));
    }
    // A MySQL's own number: servers that follow each other must have their own, and make it when there is
    // none.
    match fs::remove_file(aside.join("auto.cnf")) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::system("taking the number from MySQL's first data")(error));
        }
        _ => {}
    }
    // It gets its name when it is complete.
    fs::rename(&aside, &data).map_err(Error::system("naming MariaDB's first data"))
}

/// MySQL's superuser comes from the same machine's name alone, by which nobody comes here.
const USERS: &str =
    "CREATE USER 'root'@'%' IDENTIFIED BY ''; GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;\n";
