//! A process with everything it started, held by a guard.

use std::fs;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use super::output::{Line, Output, Stream};
use super::spawner;
use crate::error::Error;
use crate::eventually::eventually;

/// A running program in a process group of its own, killed with all it started when the guard is dropped.
///
/// Its standard input is empty; its output is captured as [`lines`](Process::lines). Should this process be
/// killed, the kernel kills the program too; processes that the *program* started must watch their own parent
/// then.
pub struct Process {
    name: String,
    child: Child,
    pid: Pid,
    output: Output,
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be started.
    pub fn spawn(mut command: Command) -> Result<Process, Error> {
        let name = command.get_program().to_string_lossy().into_owned();
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = spawner::spawn(command).map_err(Error::system(format!("starting {name}")))?;
        let output = Output::default();
        if let Some(stream) = child.stdout.take() {
            output.follow(Stream::Output, stream);
        }
        if let Some(stream) = child.stderr.take() {
            output.follow(Stream::Error, stream);
        }
        let pid = Pid::from_child(&child);
        Ok(Process {
            name,
            child,
            pid,
            output,
        })
    }

    /// The process number, which is the number of its group too. It stays taken until the guard is dropped.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the whole group with SIGSTOP: it holds all it has and does nothing. Returns when the program has
    /// stopped.
    ///
    /// # Panics
    /// When nothing of the group is left.
    pub fn freeze(&self) {
        self.signal_group(Signal::STOP)
            .expect("a process that is to be frozen still exists");
        // The signal is delivered while the threads run on, and one may still send an answer.
        eventually(STOP_TIMEOUT, "stop of a process that was told to", || {
            !executes(self.pid())
        });
    }

    /// Lets a frozen group go on.
    ///
    /// # Panics
    /// When nothing of the group is left.
    pub fn thaw(&self) {
        self.signal_group(Signal::CONT)
            .expect("a process that is to be thawed still exists");
    }

    /// Kills the program and all it started with SIGKILL, and returns when the program is dead.
    ///
    /// The order is sent once more after the program's death, for a child that was being born during the
    /// first.
    pub fn kill_tree(&self) {
        // The leader is never reaped before the guard is dropped, so its number cannot have become another's.
        self.signal_group(Signal::KILL).unwrap_or_default();
        waitid(
            WaitId::Pid(self.pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        )
        .unwrap_or_default();
        self.signal_group(Signal::KILL).unwrap_or_default();
    }

    /// Kills the program and all below it with SIGKILL, whatever groups they are in, as a loss of power
    /// would: everything is stopped first, so that nobody can react to another's death.
    pub fn kill_all_at_once(&self) {
        let mut all = vec![self.pid];
        let mut next = 0;
        while let Some(pid) = all.get(next).copied() {
            // A child that was just born is seen in the round after its parent was stopped.
            kill_process(pid, Signal::STOP).unwrap_or_default();
            let children = format!("/proc/{0}/task/{0}/children", pid.as_raw_pid());
            let children = std::fs::read_to_string(children).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|child| child.parse().ok());
            all.extend(children.filter_map(Pid::from_raw));
            next += 1;
        }
        for pid in all {
            kill_process(pid, Signal::KILL).unwrap_or_default();
        }
    }

    /// Kills the program alone with SIGKILL; what it started lives on until the guard is dropped.
    pub fn kill_leader(&self) {
        kill_process(self.pid, Signal::KILL).unwrap_or_default();
    }

    /// Asks the program alone to end, with SIGTERM.
    pub fn terminate(&self) {
        kill_process(self.pid, Signal::TERM).unwrap_or_default();
    }

    /// Asks the program alone to end, with SIGINT, as a terminal does on Ctrl-C.
    pub fn interrupt(&self) {
        kill_process(self.pid, Signal::INT).unwrap_or_default();
    }

    /// How the program ended, or nothing while it runs (a frozen program runs).
    #[must_use]
    pub fn status(&self) -> Option<ExitStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let ended = waitid(WaitId::Pid(self.pid), options).ok().flatten()?;
        let raw = match (ended.exit_status(), ended.terminating_signal()) {
            (Some(code), _) => code << 8,
            (None, signal) => signal.unwrap_or_default(),
        };
        Some(ExitStatus::from_raw(raw))
    }

    /// Waits until the program ends and all it wrote is read.
    ///
    /// # Errors
    /// [`Error::TimedOut`] with the last lines it wrote.
    pub fn wait_for_exit(&self, timeout: Duration) -> Result<ExitStatus, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let last_look = Instant::now() >= deadline;
            if let Some(status) = self.status() {
                // A grandchild may hold the streams open for ever.
                self.output.wait_for_end(Instant::now() + OUTPUT_TIMEOUT);
                return Ok(status);
            }
            if last_look {
                return Err(self.timed_out(format!("end of {}", self.name), timeout));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Every line written so far, both streams in the order they were read.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.output.all()
    }

    /// Waits for a line that contains `pattern`, among those already written as well.
    ///
    /// # Errors
    /// As [`wait_for_line_from`](Process::wait_for_line_from).
    pub fn wait_for_line(&self, pattern: &str, timeout: Duration) -> Result<Line, Error> {
        self.wait_for_line_from(0, pattern, timeout)
    }

    /// Waits for a line at `index` or later that contains `pattern`.
    ///
    /// To wait for the next such line after one that was found, pass its index + 1.
    ///
    /// # Errors
    /// [`Error::Ended`] when the program closed its output without that line, [`Error::TimedOut`] when it did
    /// not come in time; both with the last lines the program wrote.
    pub fn wait_for_line_from(&self, index: usize, pattern: &str, timeout: Duration) -> Result<Line, Error> {
        if let Some(line) = self.output.find(index, pattern, Instant::now() + timeout) {
            return Ok(line);
        }
        match self.status() {
            Some(status) => Err(Error::Ended {
                what: format!("{} ended without a line with `{pattern}` ({status})", self.name),
                tail: self.tail(),
            }),
            None => Err(self.timed_out(format!("line with `{pattern}` from {}", self.name), timeout)),
        }
    }

    fn timed_out(&self, what: String, after: Duration) -> Error {
        Error::TimedOut {
            what,
            after,
            last: format!("its last lines:\n{}", self.tail()),
        }
    }

    fn tail(&self) -> String {
        let lines = self.output.all();
        let start = lines.len().saturating_sub(TAIL_LINES);
        lines[start..]
            .iter()
            .map(|line| line.text.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn signal_group(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process_group(self.pid, signal)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_tree();
        // Reaping comes last: it frees the number, and nobody may signal it afterwards.
        if let Err(error) = self.child.wait() {
            eprintln!("testkit: could not reap {}: {error}", self.name);
        }
    }
}

/// Whether any thread of a process may still execute code of the program.
///
/// Waiting for the kernel's notice of the stop would hang: a program that waits in `vfork` for a child that
/// was stopped before its `exec` never stops itself. It sleeps uninterruptibly, and like everything that
/// sleeps so, it stops before it comes back to its code.
fn executes(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads
        .flatten()
        .any(|thread| matches!(state(&thread.path().join("stat")), Some('R' | 'S')))
}

/// The state letter of a process or thread.
fn state(stat: &Path) -> Option<char> {
    let stat = fs::read_to_string(stat).ok()?;
    // The name, in parentheses, may hold anything; the state is the first letter after its end.
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
}

/// Whether a process with this number runs; one that ended and was not reaped yet does not.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    if !matches!(
        state(&Path::new("/proc").join(pid.to_string()).join("stat")),
        Some('Z' | 'X') | None
    ) {
        return true;
    }
    // The first thread of a killed process may be gone while the others still hold its files and sockets.
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1)
}

const TAIL_LINES: usize = 20;
/// How long what an ended program wrote is read on: the threads that read it may have to wait for a
/// processor.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(30);
/// Long, as a loaded machine may need it.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
