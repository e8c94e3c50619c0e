//! The process group of a command: signalled as a whole, reaped as a whole, empty or not.

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, set_child_subreaper, test_kill_process_group, wait,
};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a killed member may stay a zombie before it counts as gone: most are this process's to reap, and
/// are, within moments.
const REAPED_AFTER: Duration = Duration::from_millis(200);

/// A process group that this process has started.
///
/// Its number is safe to signal as long as it has a member: orphans of the group become children of this
/// process ([`adopt_orphans`]), so nobody else reaps them, and only [`Group::reap`] frees the number, under
/// the lock that signalling takes, too.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    leader_status: Option<ExitStatus>,
    /// Nothing is left; its number may be another's by now.
    empty: bool,
    killed_at: Option<Instant>,
    stopped: bool,
}

impl State {
    fn is_long_dead(&self) -> bool {
        self.killed_at.is_some_and(|at| at.elapsed() >= REAPED_AFTER)
    }
}

/// How far a group has come to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Remains {
    /// How the command itself has ended.
    pub(crate) leader: Option<ExitStatus>,
    /// Whether nothing of the group is left.
    pub(crate) empty: bool,
    /// Whether the command was stopped since the last look.
    pub(crate) stopped: bool,
}

/// Makes the orphans of every group children of this process, so that they can be waited for, and are reaped
/// even in a container whose first process reaps nobody.
///
/// Where the kernel refuses, an orphan is noticed by polling.
pub(crate) fn adopt_orphans() {
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
}

impl Group {
    pub(super) fn led_by(leader: Pid) -> Self {
        Self {
            leader,
            state: Mutex::new(State {
                leader_status: None,
                empty: false,
                killed_at: None,
                stopped: false,
            }),
        }
    }

    /// The number of the group.
    pub(super) fn number(&self) -> Pid {
        self.leader
    }

    /// Sends `signal` to every member; nothing if the group is empty.
    pub(super) fn signal(&self, signal: Signal) {
        let mut state = self.lock();
        if state.empty {
            return;
        }
        // What has just ended, or has got itself other privileges, cannot be signalled; that shows by its
        // being there or not.
        let _ = kill_process_group(self.leader, signal);
        if signal == Signal::KILL {
            state.killed_at.get_or_insert_with(Instant::now);
        }
    }

    /// Asks every member to end, the stopped ones too.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Whether SIGKILL was sent.
    pub(super) fn was_killed(&self) -> bool {
        self.lock().killed_at.is_some()
    }

    /// Reaps what has ended, and says what is left.
    pub(super) fn reap(&self) -> Remains {
        let mut state = self.lock();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            if status.stopped() {
                state.stopped |= pid == self.leader;
            } else if pid == self.leader {
                state.leader_status = Some(ExitStatus::from_raw(status.as_raw()));
            }
        }
        if state.leader_status.is_some() && !state.empty {
            state.empty = test_kill_process_group(self.leader) == Err(Errno::SRCH)
                || (state.is_long_dead() && !has_living_member(self.leader));
        }
        Remains {
            leader: state.leader_status,
            empty: state.empty,
            stopped: std::mem::take(&mut state.stopped),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the group has a member that is more than a zombie: one whose parent never reaps it would keep the
/// group from ever being empty.
fn has_living_member(group: Pid) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else {
        return true;
    };
    processes.flatten().any(|process| {
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else {
            return false;
        };
        // The name, in parentheses, may hold anything; behind it come state, parent and group.
        let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
        let state = fields.next();
        let of_group = fields.nth(1).and_then(|field| field.parse().ok()) == Some(group.as_raw_pid());
        // The first thread of a process may be gone while others still run.
        let runs = || fs::read_dir(process.path().join("task")).is_ok_and(|threads| threads.count() > 1);
        of_group && (!matches!(state, Some("Z" | "X")) || runs())
    })
}
