//! A disk of a few megabytes for one server, which can be filled without harm to anybody else.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::eventually::poll_until;
use crate::process::Process;

/// A file system in memory, in namespaces of its own that a process holds open: it outlives its server, as a
/// disk does.
pub(super) struct SmallDisk {
    keeper: Process,
    /// Where it is, for who is in its namespaces.
    folder: PathBuf,
}

impl SmallDisk {
    /// Makes one at an empty folder.
    ///
    /// # Errors
    /// [`Error::System`], where the machine lets nobody make namespaces.
    pub(super) async fn at(folder: &Path, bytes: u64) -> Result<SmallDisk, Error> {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        // Who enters a namespace is forgotten by the kernel as somebody's child, so it is told anew.
        command.arg(
            "mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" && touch \"$2/made\" && exec setpriv --pdeathsig KILL sleep infinity",
        );
        command.arg("sh").arg(bytes.to_string()).arg(folder);
        let disk = SmallDisk {
            keeper: Process::spawn(command)?,
            folder: folder.to_owned(),
        };
        poll_until(MAKING_TIMEOUT, "a small disk; namespaces are needed", || async {
            match disk.path("made").exists() {
                true => Ok(()),
                false => Err(format!("{:?}", disk.keeper.lines())),
            }
        })
        .await?;
        Ok(disk)
    }

    /// A command that runs a program which has the disk.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--mount", "--preserve-credentials"]);
        command.arg(format!("--target={}", self.keeper.pid()));
        command.args(["setpriv", "--pdeathsig", "KILL"]).arg(program);
        command
    }

    /// Leaves no byte free.
    ///
    /// # Errors
    /// [`Error::System`] for another reason than that it is full.
    pub(super) fn fill(&self) -> Result<(), Error> {
        let filling = || -> io::Result<()> {
            let mut ballast = fs::File::create(self.path(BALLAST))?;
            loop {
                match ballast.write_all(&[0; 4_096]) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        };
        filling().map_err(Error::system("filling a small disk"))
    }

    /// Takes away what filled it.
    ///
    /// # Errors
    /// [`Error::System`].
    pub(super) fn free(&self) -> Result<(), Error> {
        fs::remove_file(self.path(BALLAST)).map_err(Error::system("freeing a small disk"))
    }

    /// A file of the disk, as it is seen from here.
    fn path(&self, name: &str) -> PathBuf {
        let mut path = PathBuf::from(format!("/proc/{}/root", self.keeper.pid()));
        path.extend(self.folder.components().skip(1));
        path.join(name)
    }
}

const BALLAST: &str = "ballast";
const MAKING_TIMEOUT: Duration = Duration::from_secs(30);
