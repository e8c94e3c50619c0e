//! The terminal, where there is one: it goes to whoever asks for it, the command or the others of this
//! process's group.
//!
//! The command is in a group of its own, and a terminal has one group in its foreground: who reads from it,
//! or sets it up, from another one is stopped by the kernel, with all of its group. Where nobody else of this
//! process's group could want it, this process lends the terminal for the whole term. In a pipeline it stays
//! the group's, so that Ctrl-C reaches all of it; the command is lent it when it is stopped for it, and the
//! others have it back when one of them is. This process itself is never stopped for it
//! ([`Signals`](super::Signals) hears instead): it would not renew, and its work would be killed.

use super::system::own_group;
use super::work::Work;
use crate::warden::tree::{living_members_of, stat};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, Signal, getpid, kill_current_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::io::stdin;
use std::iter::successors;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

/// This process's terminal, whatever its input is.
const TERMINAL: &str = "/dev/tty";

/// After Ctrl-Z the group is woken again so often: a pager first tidies up, and then stops itself.
const WAKES: u32 = 10;
const WAKE_EVERY: Duration = Duration::from_millis(100);

/// The terminal, for one term. Dropping it gives it back to this process's group.
pub(super) struct Terminal {
    /// None, where this process has no terminal.
    device: Option<OwnedFd>,
    /// None, where this PID namespace does not see it; then nobody here has the terminal, or can be lent it.
    ours: Option<Pid>,
    /// None, where there is nobody to lend it to.
    theirs: Option<Pid>,
    is_lent: bool,
    /// How often the group is to be woken yet.
    wakes: u32,
}

/// What is to become of a command that was stopped.
#[derive(PartialEq, Eq)]
pub(super) enum Stopped {
    /// It is to go on: it has the terminal.
    GoesOn,
    /// Whoever has stopped it may wake it.
    Stays,
    /// It cannot go on: in words.
    Refused(&'static str),
}

impl Terminal {
    /// The terminal for this work, which has it at once where this process is in the foreground of its input,
    /// and alone.
    pub(super) fn of(work: &Work) -> Self {
        let mut terminal = Self::of_nobody();
        terminal.theirs = Some(work.number());
        let ours = terminal.ours;
        // A command that was not started is nobody to lend it to.
        let is_alone =
            ours.is_some_and(|ours| tcgetpgrp(stdin()).is_ok_and(|group| group == ours) && is_alone_in(ours));
        if !work.is_orphaned() && is_alone && terminal.lend() {
            // It may have been stopped for reading before it had the terminal.
            work.signal(Signal::CONT);
        }
        terminal
    }

    /// The terminal beside which no command works.
    pub(super) fn of_nobody() -> Self {
        let input_group = tcgetpgrp(stdin()).ok();
        let device = match input_group {
            Some(_) => fcntl_dupfd_cloexec(stdin(), 0),
            None => open(
                TERMINAL,
                OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
                Mode::empty(),
            ),
        };
        Self {
            device: device.ok(),
            ours: own_group(),
            theirs: None,
            is_lent: false,
            wakes: 0,
        }
    }

    /// Takes in that the command was stopped by this signal. One that asks for the terminal is lent it.
    pub(super) fn command_stopped(&mut self, signal: Signal) -> Stopped {
        match signal {
            Signal::TTIN | Signal::TTOU if self.lend() => Stopped::GoesOn,
            Signal::TTIN => Stopped::Refused(
                "it was stopped, as it read from the terminal in the background; run tenure in the foreground, or give \
                 the command other input: < /dev/null",
            ),
            Signal::TTOU => Stopped::Refused(
                "it was stopped, as it set up the terminal, or wrote to it, in the background; run tenure in the \
                 foreground, or without a terminal: setsid tenure run",
            ),
            // Suspended at the terminal, it would keep the lease and the terminal, and nobody could wake it.
            _ if self.is_lent => Stopped::GoesOn,
            _ => Stopped::Stays,
        }
    }

    /// The signal of a key with which the command was ended, if it was: it has the terminal, and nobody else
    /// has heard of it.
    pub(super) fn interrupted(&self, status: ExitStatus) -> Option<Signal> {
        let signal = status.signal().and_then(Signal::from_named_raw)?;
        (self.is_lent && matches!(signal, Signal::INT | Signal::QUIT)).then_some(signal)
    }

    /// Takes in that this process's group was to be stopped by this signal: the others of it are. They go on,
    /// with the terminal where they asked for it.
    pub(super) fn group_stopped(&mut self, signal: Signal) {
        if signal == Signal::TSTP {
            // They would suspend the command with them, as soon as a pipe between them is full or empty.
            wake_group();
            self.wakes = WAKES;
        } else if self.is_lent {
            self.take_back();
        } else if self.is_ours(self.foreground()) {
            wake_group();
        }
    }

    /// Wakes the others of the group once more, where that is to be done. May be dropped and called again.
    pub(super) async fn wake_again(&mut self) {
        if self.wakes == 0 {
            return std::future::pending().await;
        }
        tokio::time::sleep(WAKE_EVERY).await;
        self.wakes -= 1;
        if self.is_ours(self.foreground()) {
            wake_group();
        }
    }

    /// Whether the command has the terminal now: only this process's group can lend it.
    fn lend(&mut self) -> bool {
        let (Some(device), Some(theirs)) = (&self.device, self.theirs) else {
            return false;
        };
        let group = tcgetpgrp(device).ok();
        let has_it = group == Some(theirs) || self.is_ours(group) && tcsetpgrp(device, theirs).is_ok();
        self.is_lent |= has_it;
        has_it
    }

    fn take_back(&mut self) {
        let Some(device) = &self.device else {
            return;
        };
        // Not from another group: a shell may have taken it back. One that is gone, as a job of a shell that
        // was killed before it, would keep it from everybody.
        let is_there = |group| living_members_of(group).next().is_some();
        if tcgetpgrp(device).is_ok_and(|group| Some(group) != self.theirs && is_there(group)) {
            return;
        }
        self.is_lent = false;
        if self.ours.is_some_and(|ours| tcsetpgrp(device, ours).is_ok()) {
            // Who asked for it meanwhile was stopped.
            wake_group();
        }
    }

    fn is_ours(&self, group: Option<Pid>) -> bool {
        self.ours.is_some() && group == self.ours
    }

    fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(self.device.as_ref()?).ok()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.is_lent {
            self.take_back();
        }
    }
}

/// Whether nobody else is in this process's group, but for those that have started it: a script, `make` or
/// `sudo` waits.
fn is_alone_in(ours: Pid) -> bool {
    let parent = |pid: &Pid| Pid::from_raw(stat(*pid)?.parent);
    let waiting: Vec<Pid> = successors(Some(getpid()), parent).collect();
    living_members_of(ours).all(|pid| waiting.contains(&pid))
}

/// Whether this process's group is the one that the keys of its terminal signal.
pub(super) fn is_in_foreground() -> bool {
    let terminal = open(
        TERMINAL,
        OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    terminal.is_ok_and(|terminal| own_group().is_some_and(|ours| tcgetpgrp(terminal) == Ok(ours)))
}

fn wake_group() {
    let _ = kill_current_process_group(Signal::CONT);
}
