//! An instance as a real process, behind a guard.

use crate::Outcome;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;
use tokio::sync::mpsc;

/// One line of an instance, or its end.
#[derive(Debug)]
pub struct Said {
    /// Which instance.
    pub member: usize,
    /// When the line was read.
    pub at: Instant,
    /// The line; `None` when standard output has ended.
    pub line: Option<String>,
}

/// A process, killed when this is dropped. Should the drill itself be killed, the kernel kills the process
/// too: it has asked for that by `--end-with-parent`.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
}

impl Child {
    /// Starts this very program with other arguments; what it writes goes to `said`.
    pub fn spawn(member: usize, arguments: &[String], said: &mpsc::Sender<Said>) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (output, errors) = (process.stdout.take(), process.stderr.take());
        let child = Self { process };
        let output = output.expect("standard output is piped");
        let errors = errors.expect("standard error is piped");
        follow(member, errors, said.clone(), AtEnd::Nothing);
        follow(member, output, said.clone(), AtEnd::Say);
        Ok(child)
    }

    /// Lets it go on where it holds.
    pub fn go(&mut self) -> Outcome<()> {
        let input = self.process.stdin.as_mut().expect("standard input is piped");
        Ok(input.write_all(b"go\n")?)
    }

    /// SIGSTOP: it keeps all that it has, and does nothing.
    pub fn freeze(&self) -> Outcome<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    pub fn thaw(&self) -> Outcome<()> {
        self.signal(Signal::CONT)
    }

    /// SIGKILL, and waits until it is dead.
    pub fn kill(&mut self) -> Outcome<ExitStatus> {
        self.process.kill()?;
        Ok(self.process.wait()?)
    }

    /// How it ended; waits for it.
    pub fn status(&mut self) -> Outcome<ExitStatus> {
        Ok(self.process.wait()?)
    }

    fn signal(&self, signal: Signal) -> Outcome<()> {
        // It is not reaped before it is dropped or has ended, so the number is still its own.
        Ok(kill_process(Pid::from_child(&self.process), signal)?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself: then there is nothing to kill.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// What to say when a stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AtEnd {
    Say,
    Nothing,
}

fn follow(member: usize, stream: impl Read + Send + 'static, said: mpsc::Sender<Said>, at_end: AtEnd) {
    std::thread::spawn(move || {
        let lines = BufReader::new(stream).lines().map_while(Result::ok).map(Some);
        let end = (at_end == AtEnd::Say).then_some(None);
        for line in lines.chain(end) {
            let at = Instant::now();
            // Nobody listens any more when the drill is over.
            if said.blocking_send(Said { member, at, line }).is_err() {
                return;
            }
        }
    });
}
