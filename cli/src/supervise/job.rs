//! What is run: a command, found before anybody campaigns for it.

use super::group::Group;
use super::system;
use crate::exit::{Code, Failure};
use rustix::fs::{Access, access};
use rustix::process::Pid;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tenure::FencingToken;

/// The command, and what it is told.
pub(crate) struct Job {
    program: OsString,
    arguments: Vec<OsString>,
    lease: String,
    environment: Vec<(&'static str, String)>,
}

/// Where `execvp` looks without a PATH.
const PATH_DEFAULT: &str = "/bin:/usr/bin";

impl Job {
    /// The command `words`, if it can be found and executed as things stand now.
    ///
    /// # Errors
    /// [`Code::NotFound`] and [`Code::NotExecutable`]. Nobody has campaigned yet.
    pub(crate) fn new(words: &[OsString], lease: &str) -> Result<Self, Failure> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| Failure::new(Code::Usage, "no command is given; write it after --"))?;
        find(program, lease)?;
        Ok(Self {
            program: program.clone(),
            arguments: arguments.to_vec(),
            lease: lease.to_owned(),
            environment: Vec::new(),
        })
    }

    /// Adds to what the command finds in its environment.
    pub(crate) fn tell(&mut self, variable: &'static str, value: impl Into<String>) {
        self.environment.push((variable, value.into()));
    }

    /// The program, for people.
    pub(crate) fn shown(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// Starts it for the term with this token, in a process group of its own that dies with this process.
    ///
    /// # Errors
    /// It cannot be started: as [`Job::new`]. Nothing runs.
    pub(super) fn start(&self, token: FencingToken) -> Result<Group, Failure> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            // A file of this process's own, which one that it starts could only be refused.
            .env_remove("TENURE_TRACE")
            .envs(self.environment.iter().map(|(variable, value)| (variable, value)))
            .env("TENURE_NAME", &self.lease)
            .env("TENURE_TOKEN", token.to_string())
            .process_group(0);
        system::die_with_parent(&mut command);
        let child = command
            .spawn()
            .map_err(|error| refused(&self.program, &self.lease, &error))?;
        // It is reaped with its whole group; the standard library would only get in the way.
        Ok(Group::led_by(Pid::from_child(&child)))
    }
}

fn find(program: &OsStr, lease: &str) -> Result<(), Failure> {
    if program.as_bytes().contains(&b'/') {
        return check(Path::new(program)).map_err(|error| refused(program, lease, &error));
    }
    if program.is_empty() {
        return Err(refused(program, lease, &ErrorKind::NotFound.into()));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH_DEFAULT.into());
    let mut best = io::Error::from(ErrorKind::NotFound);
    for directory in std::env::split_paths(&path) {
        // An empty part of PATH is the current directory.
        let candidate: PathBuf = Path::new(".").join(directory).join(program);
        match check(&candidate) {
            Ok(()) => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => best = error,
        }
    }
    Err(refused(program, lease, &best))
}

fn check(path: &Path) -> io::Result<()> {
    if path.metadata()?.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    Ok(access(path, Access::EXEC_OK)?)
}

fn refused(program: &OsStr, lease: &str, error: &io::Error) -> Failure {
    let shown = program.to_string_lossy();
    let (code, words) = match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => (
            Code::NotFound,
            format!(
                "command {shown:?} was not found; check its name, PATH, and the interpreter in its first line"
            ),
        ),
        ErrorKind::PermissionDenied => (
            Code::NotExecutable,
            format!("command {shown:?} cannot be executed: permission denied; chmod +x it"),
        ),
        _ => (
            Code::NotExecutable,
            format!("command {shown:?} cannot be executed: {error}"),
        ),
    };
    Failure::new(code, format!("lease \"{lease}\": {words}"))
}
