//! What is run: a command, found before anybody campaigns for it.

use super::ending::{Ending, Why};
use super::health::Health;
use super::heartbeat::Heartbeat;
use super::shell::Environment;
use super::signals::Signals;
use super::spared::reap_adopted;
use super::system::signals_as_at_start;
use super::work::{NotStarted, Work, limit_of, no_warden};
use crate::arguments::own_variables;
use crate::exit::{Code, Failure};
use crate::manager;
use crate::output::unless_url;
use crate::recording::TermSpan;
use crate::warden::Begin;
use rustix::fs::{Access, access};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Pid;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tenure::{FencingToken, Leadership};

/// The command, and what it is told.
pub(crate) struct Job {
    program: OsString,
    arguments: Vec<OsString>,
    lease: String,
    environment: Environment,
    /// Where the lease is, and in whose name: for the warden to give it back.
    claim: Claim,
    health: Option<Health>,
    heartbeat: Option<Heartbeat>,
}

/// What a warden needs to give a lease back.
#[derive(Default)]
struct Claim {
    /// May hold a password: never shown.
    store: String,
    incarnation: u128,
}

/// Of a term that is over as it begins.
pub(super) const WON_TOO_LATE: &str = "it was won too late to start the command";

/// This very program, though its file was replaced meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";

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
            claim: Claim::default(),
            health: None,
            heartbeat: None,
        })
    }

    /// Adds to what the command finds in its environment.
    pub(crate) fn tell(&mut self, variable: &'static str, value: impl Into<OsString>) {
        self.environment.push((variable, value.into()));
    }

    /// The program, for people.
    pub(crate) fn shown(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// Says how to find out whether it is well.
    pub(crate) fn ask(&mut self, health: Health) {
        self.health = Some(health);
    }

    /// Hands it a file that it must touch.
    ///
    /// # Errors
    /// As [`Heartbeat::hand_over`].
    pub(crate) fn expect(&mut self, mut heartbeat: Heartbeat) -> Result<(), Failure> {
        let told = heartbeat.hand_over()?;
        self.environment.push(told);
        self.heartbeat = Some(heartbeat);
        Ok(())
    }

    /// Returns when it is not well, and says why; never, where nothing is asked.
    pub(super) async fn unwell(&self, token: FencingToken) -> String {
        let failed = async {
            match &self.health {
                Some(health) => health.failed(&self.environment_of(token)).await,
                None => std::future::pending().await,
            }
        };
        let missed = async {
            match &self.heartbeat {
                Some(heartbeat) => heartbeat.missed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            why = failed => why,
            why = missed => why,
        }
    }

    /// What the command of a term finds in its environment, for others that are to know it, too.
    pub(crate) fn environment_of(&self, token: FencingToken) -> Environment {
        let mut environment = self.environment.clone();
        environment.push(("TENURE_NAME", self.lease.as_str().into()));
        environment.push(("TENURE_TOKEN", token.to_string().into()));
        environment
    }

    /// Says where the lease is, and which process holds it.
    pub(crate) fn claim(&mut self, store: String, incarnation: u128) {
        self.claim = Claim { store, incarnation };
    }

    /// Starts it for this term, below a warden. Says whether it was started; if not, something may be left to
    /// be waited for.
    ///
    /// # Errors
    /// There is no warden. Nothing runs.
    pub(super) async fn start(
        &self,
        leadership: &Leadership,
        span: Option<&TermSpan>,
        margin: Duration,
        signals: &mut Signals,
    ) -> Result<(Work, Result<(), NotStarted>), Failure> {
        // Wardens of terms before this one, and what hooks have left meanwhile.
        reap_adopted(&[]);
        let failed = |error: io::Error| no_warden(&self.lease, &error.to_string());
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        fcntl_setfd(&theirs, FdFlags::empty()).map_err(|error| failed(error.into()))?;
        let mut command = Command::new(THIS_PROGRAM);
        command
            .arg0("tenure")
            .args(["warden", "--socket", &theirs.as_raw_fd().to_string(), "--"])
            .arg(&self.program)
            .args(&self.arguments);
        for variable in own_variables() {
            command.env_remove(variable);
        }
        for variable in manager::VARIABLES {
            command.env_remove(variable);
        }
        command
            .envs(self.environment.iter().map(|(variable, value)| (variable, value)))
            .env("TENURE_NAME", &self.lease)
            .env("TENURE_TOKEN", leadership.token().to_string())
            .envs(span.into_iter().flat_map(TermSpan::environment))
            // What ends this process's group must not end the warden.
            .process_group(0);
        signals_as_at_start(&mut command);
        let child = command.spawn().map_err(failed)?;
        drop(theirs);
        ours.set_nonblocking(true).map_err(failed)?;
        let ours = tokio::net::UnixStream::from_std(ours).map_err(failed)?;
        let begin = Begin {
            store: self.claim.store.clone(),
            lease: leadership.name().clone(),
            incarnation: self.claim.incarnation,
            token: leadership.token(),
            limit: limit_of(leadership.until(), margin),
        };
        Ok(Work::begin(Pid::from_child(&child), ours, &begin, signals).await)
    }

    /// How a term ended in which it was not started; `None`: as one in which its warden has died.
    ///
    /// # Errors
    /// It cannot be started: as [`Job::new`].
    pub(super) fn not_started(&self, why: NotStarted) -> Result<Option<Ending>, Failure> {
        match why {
            NotStarted::Signalled(signal) => Ok(Some(Ending::NotBegun(signal))),
            NotStarted::Late => Ok(Some(Ending::Ended(Why::Unwell(WON_TOO_LATE.to_owned())))),
            // Another host may be able to: it gets the time of a cooldown.
            NotStarted::Unanswered => Ok(Some(Ending::Ended(Why::Unwell(NOT_STARTED.to_owned())))),
            NotStarted::Refused(error) => Err(refused(&self.program, &self.lease, &error)),
            NotStarted::NoWarden(why) => Err(no_warden(&self.lease, &why)),
            NotStarted::WardenKilled => Ok(None),
        }
    }
}

const NOT_STARTED: &str = "the command could not be started in time; is the file system away that it is on?";

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
    let name = program.to_string_lossy();
    let (shown, has_spaces) = (unless_url(&name), name.contains(char::is_whitespace));
    let (code, words) = match error.kind() {
        _ if is_shortage(error) => (
            Code::Internal,
            format!("command \"{shown}\" cannot be started: {error}; raise the limits of this user"),
        ),
        ErrorKind::NotFound | ErrorKind::NotADirectory if has_spaces => (
            Code::NotFound,
            format!(
                "command \"{shown}\" was not found; give its words apart from each other, or a shell the line: sh -c '…'"
            ),
        ),
        ErrorKind::NotFound | ErrorKind::NotADirectory => (
            Code::NotFound,
            format!(
                "command \"{shown}\" was not found; check its name, PATH, and the interpreter in its first line"
            ),
        ),
        ErrorKind::PermissionDenied => (
            Code::NotExecutable,
            format!("command \"{shown}\" cannot be executed: permission denied; chmod +x it"),
        ),
        _ => (
            Code::NotExecutable,
            format!("command \"{shown}\" cannot be executed: {error}; name a program"),
        ),
    };
    Failure::new(code, format!("lease \"{lease}\": {words}"))
}

/// Whether this host lacked what any command needs: processes, memory, open files.
fn is_shortage(error: &io::Error) -> bool {
    let numbers = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE];
    error
        .raw_os_error()
        .is_some_and(|number| numbers.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::refused;
    use std::ffi::OsStr;
    use std::io;

    /// To name another program, or to make it executable, would help nobody.
    #[test]
    fn what_the_host_lacks_is_no_fault_of_the_program() {
        for (number, code, words) in [
            (libc::EAGAIN, 70, "raise the limits"),
            (libc::ENOMEM, 70, "raise the limits"),
            (libc::ENOENT, 127, "was not found"),
            (libc::ENOEXEC, 126, "name a program"),
        ] {
            let error = io::Error::from_raw_os_error(number);
            let failure = refused(OsStr::new("./program"), "job", &error);
            assert_eq!(failure.code, code, "{failure:?}");
            assert!(failure.message.contains(words), "{failure:?}");
        }
    }
}
