//! Two families of server that speak one protocol, each set up in its own words.

use std::path::Path;
use std::process::Command;

use super::locate::{loaded, mariadb_program, root_of, version_of};
use crate::error::Error;

/// Whose server it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SqlFamily {
    /// MariaDB.
    Mariadb,
    /// Oracle's MySQL.
    Mysql,
}

impl SqlFamily {
    /// Whose servers the tests start.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why the server does not tell.
    pub fn installed() -> Result<SqlFamily, Error> {
        SqlFamily::of(&mariadb_program()?)
    }

    pub(crate) fn of(program: &Path) -> Result<SqlFamily, Error> {
        Ok(match version_of(program)?.contains("MariaDB") {
            true => SqlFamily::Mariadb,
            false => SqlFamily::Mysql,
        })
    }

    /// What keeps a server small and by itself.
    pub(super) fn flags(self) -> &'static [&'static str] {
        match self {
            SqlFamily::Mariadb => &["--innodb-log-file-size=4M"],
            // A folder for files and a second protocol, on a port that all share, are what it begins with by
            // itself.
            SqlFamily::Mysql => &[
                "--innodb-redo-log-capacity=8M",
                "--secure-file-priv=NULL",
                "--mysqlx=OFF",
            ],
        }
    }

    /// Without a certificate, MySQL makes one, and so does MariaDB from 11.4 on.
    pub(super) fn without_encryption(self) -> &'static [&'static str] {
        match self {
            SqlFamily::Mariadb => &["--skip-ssl"],
            SqlFamily::Mysql => &["--tls-version="],
        }
    }

    /// The command that makes a data folder, whose superuser has no password, and may come from every
    /// address.
    pub(crate) fn initialising(self, program: &Path, data: &Path, users: &Path) -> Command {
        let mut command = match self {
            SqlFamily::Mariadb => {
                let mut command = run(&root_of(program).join("bin/mariadb-install-db"), program);
                command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
                command
            }
            SqlFamily::Mysql => {
                let mut command = server_command(program);
                command.arg("--initialize-insecure");
                command.arg(format!("--init-file={}", users.display()));
                command
            }
        };
        command.args(self.flags());
        command.arg(format!("--datadir={}", data.display()));
        command
    }
}

/// What a server is told in every case.
pub(super) fn server_command(program: &Path) -> Command {
    let mut command = run(program, program);
    for (option, folder) in [
        ("lc-messages-dir", "share/mysql"),
        ("plugin-dir", "lib/mysql/plugin"),
    ] {
        let folder = root_of(program).join(folder);
        command.arg(format!("--{option}={}", folder.display()));
    }
    command
}

fn run(what: &Path, program: &Path) -> Command {
    let mut command = loaded(what, program);
    command.args(["--no-defaults", "--user=root"]);
    command.arg(format!("--basedir={}", root_of(program).display()));
    command
}
