//! What the tests of the command share: the real binary, over a store of the test's own.

#![allow(dead_code, reason = "with fewer stores a part is not used")]

pub mod journeys;
pub mod lifetime;
pub mod shell;

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;
use tenure_testkit::{Process, ScratchDir, eventually};

/// For what happens within milliseconds on an idle machine, and within seconds on a loaded one.
pub const SOON: Duration = Duration::from_secs(30);

/// A ttl of work that is to say nothing: a request that takes longer than a tenth of it is spoken of.
pub const UNHURRIED: &str = "10m";

/// A scratch folder with an SQLite store in it.
pub struct Sandbox {
    /// The folder.
    pub dir: ScratchDir,
    /// The store's URL.
    pub store: String,
}

/// A store whose files are elsewhere.
pub struct StoreAway([(PathBuf, PathBuf); 3]);

impl StoreAway {
    pub fn bring_back(self) {
        fs::remove_dir(&self.0[0].0).unwrap();
        for (here, there) in &self.0 {
            fs::rename(there, here).unwrap();
        }
    }
}

/// How a command that was waited for ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Sandbox {
    pub fn new(label: &str) -> Self {
        let dir = ScratchDir::new(label);
        let store = format!("sqlite:{}", dir.join("leases.db").display());
        Self { dir, store }
    }

    /// One whose leases are at `store`.
    pub fn at(label: &str, store: &str) -> Self {
        Self {
            store: store.to_owned(),
            ..Self::new(label)
        }
    }

    /// `tenure` with these arguments, an environment without any of its variables, and this store.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bare(arguments);
        command
            .env("TENURE_STORE", &self.store)
            .env("XDG_STATE_HOME", self.dir.path())
            .current_dir(self.dir.path());
        command
    }

    /// Runs it to its end.
    pub fn tenure(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments))
    }

    /// Starts it.
    pub fn start(&self, arguments: &[&str]) -> Process {
        Process::spawn(self.command(arguments)).unwrap()
    }

    /// Starts `tenure run <options> <name> -- sh -c <script>`.
    pub fn run(&self, options: &[&str], name: &str, script: &str) -> Process {
        let arguments = [&["run"], options, &[name, "--", "sh", "-c", script]].concat();
        self.start(&arguments)
    }

    /// The lease as `tenure status` has it.
    pub fn lease(&self, name: &str) -> Value {
        let ended = self.tenure(&["status", name, "--output", "json"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        json(&ended.stdout)["leases"][0].clone()
    }

    /// Waits until somebody holds it.
    pub fn until_held(&self, name: &str) {
        eventually(SOON, "the lease is held", || {
            let lease = self.lease(name);
            if lease["state"] == "held" {
                Ok(())
            } else {
                Err(lease)
            }
        });
    }

    /// A path in the folder, for scripts.
    pub fn path(&self, file: &str) -> String {
        self.dir.join(file).display().to_string()
    }

    /// What was written to a file in the folder; nothing if it is not there.
    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.dir.join(file)).unwrap_or_default()
    }

    /// Waits until a file in the folder holds a whole line, and answers it.
    pub fn line(&self, file: &str) -> String {
        eventually(SOON, file, || {
            self.read(file)
                .split_once('\n')
                .map(|(line, _)| line.to_owned())
                .filter(|line| !line.is_empty())
        })
    }

    /// Waits until a file in the folder holds a process number.
    pub fn pid(&self, file: &str) -> u32 {
        self.line(file).trim().parse().unwrap()
    }

    /// Moves the store's file away with all that is beside it; a folder stands in its place.
    pub fn move_store_away(&self) -> StoreAway {
        let aside = self.dir.join("away");
        fs::create_dir(&aside).unwrap();
        let names = ["leases.db", "leases.db-wal", "leases.db-shm"];
        let files = names.map(|name| (self.dir.join(name), aside.join(name)));
        for (here, there) in &files {
            fs::rename(here, there).unwrap();
        }
        fs::create_dir(&files[0].0).unwrap();
        StoreAway(files)
    }

    /// Writes an executable script.
    pub fn script(&self, file: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.dir.join(file);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

/// `tenure` with these arguments and none of its variables in the environment.
pub fn bare(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("TENURE_") {
            command.env_remove(variable);
        }
    }
    command.args(arguments);
    command
}

/// Runs a command to its end.
pub fn ended(mut command: Command) -> Ended {
    let Output {
        status,
        stdout,
        stderr,
    } = command.stdin(std::process::Stdio::null()).output().unwrap();
    Ended {
        code: status.code().expect("tenure is not ended by a signal"),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// What a test asks of the machine that not every machine gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// A control group (version 2) that it may make, below its own.
    ControlGroups,
    /// To be root: only root can make a program that changes its user, or give a file away.
    Root,
    /// systemd, and to be root, who can start it as the first process of a namespace of its own.
    Systemd,
}

/// A comma between the words of those that this machine is known not to give, and whose tests are left out.
const WITHOUT: &str = "TESTS_WITHOUT";

/// Fails, and says how to give the test what it needs, or that it may be left out.
#[track_caller]
pub fn leave_out_or_fail(need: Need) {
    let (word, way_out) = match need {
        Need::ControlGroups => (
            "control-groups",
            "a control group (version 2, of Linux 5.14 or later) that it may make: run it as root, or by \
             `systemd-run --user --scope -p Delegate=yes`",
        ),
        Need::Root => (
            "root",
            "root, as only root can make a program that changes its user, or give a file away: run it as root",
        ),
        Need::Systemd => (
            "systemd",
            "the program of systemd, and root, who can start it as the first process of a PID namespace: install systemd, and \
             run it as root",
        ),
    };
    let without = std::env::var(WITHOUT).unwrap_or_default();
    assert!(
        without.split(',').any(|known| known.trim() == word),
        "this test needs {way_out}; or leave it out with {WITHOUT}={word}"
    );
    eprintln!("NOT RUN: {WITHOUT} names {word}");
}

/// Reads JSON.
#[track_caller]
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The exit code of a process.
#[track_caller]
pub fn exit_code(process: &Process) -> i32 {
    let status = process.wait_for_exit(SOON).unwrap();
    status
        .code()
        .unwrap_or_else(|| panic!("ended by a signal: {status}"))
}

/// Sends a signal to one process.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The number of a process's parent.
pub fn parent_of(pid: u32) -> u32 {
    status_of(pid, "PPid:").parse().unwrap()
}

/// Waits until a process is stopped.
pub fn until_stopped(pid: u32) {
    eventually(SOON, "it is stopped", || {
        status_of(pid, "State:").starts_with('T')
    });
}

/// What the kernel tells of a process under `label`.
fn status_of(pid: u32, label: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(label));
    value.unwrap().trim().to_owned()
}

/// How many children a process has, the dead ones too that it has not reaped.
pub fn children_of(pid: u32) -> usize {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().count()
}

/// Waits until the warden has told `tenure run` that the command runs: one that is killed before has not
/// started it.
pub fn until_watched(tenure: u32) {
    let tasks = format!("/proc/{tenure}/task");
    eventually(SOON, "its deadline is armed", || {
        let mut tasks = fs::read_dir(&tasks).unwrap().flatten();
        tasks.any(|task| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "tenure deadline\n")
        })
    });
}
