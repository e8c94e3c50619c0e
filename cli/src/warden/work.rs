//! The work: a command and everything below it.

use super::cgroup::Cgroup;
use super::start;
use super::tree::{self, Meant};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, getpid, kill_process, kill_process_group,
    wait, waitid, waitpid,
};
use std::ffi::OsString;
use std::io;
use tenure::contract::Moment;

/// What was found out about the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum News {
    /// The command was stopped, by this signal.
    Stopped(i32),
    /// The command ended, with this status of `wait`.
    Ended(i32),
    /// Nothing is left.
    Empty,
}

/// The command, its group, and all that descends from it.
///
/// The command is not reaped before everything else is gone: so the number of its group stays its own.
pub(super) struct Work {
    leader: Pid,
    cgroup: Option<Cgroup>,
    has_ended: bool,
    is_reaped: bool,
}

impl Work {
    /// Starts the command before it is to be killed. Answers, too, why it has no control group, as the
    /// system's error number, or 0.
    ///
    /// # Errors
    /// It cannot be started, or not in time. Nothing runs.
    pub(super) fn start(words: &[OsString], kill_at: Moment) -> io::Result<(Self, i32)> {
        let made = Cgroup::make().and_then(|cgroup| Ok((cgroup.members()?, cgroup)));
        let (members, cgroup, why) = match made {
            Ok((members, cgroup)) => (Some(members), Some(cgroup), 0),
            Err(error) => (None, None, error.raw_os_error().unwrap_or(libc::ENOENT)),
        };
        let leader = start::start(words, members, kill_at)?;
        let was_made = cgroup.is_some();
        // Where it was not let in, or has ended by now, the group says nothing.
        let cgroup = cgroup.filter(Cgroup::has_members);
        let was_kept_out = was_made && cgroup.is_none() && end_of(leader).is_none();
        let work = Self {
            leader,
            cgroup,
            has_ended: false,
            is_reaped: false,
        };
        Ok((work, if was_kept_out { libc::EPERM } else { why }))
    }

    /// The command's number, and its group's.
    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// Whether the command has ended; others may be left.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Sends `signal` to the command's group, and to the command where it has left that for another.
    pub(super) fn signal(&self, signal: Signal) {
        self.signal_group(signal);
        let has_left = || tree::stat(self.leader).is_some_and(|stat| stat.group != self.leader.as_raw_pid());
        if !self.is_reaped && has_left() {
            // Not reaped, its number is its own. What cannot be signalled shows as with the group.
            let _ = kill_process(self.leader, signal);
        }
    }

    fn signal_group(&self, signal: Signal) {
        if !self.is_reaped {
            // What has just ended, or has got itself other privileges, cannot be signalled; that shows by its
            // being there.
            let _ = kill_process_group(self.leader, signal);
        }
    }

    /// Asks everything to end, the stopped too.
    pub(super) fn terminate(&self) {
        for signal in [Signal::TERM, Signal::CONT] {
            self.signal_group(signal);
            // The group has it already.
            let meant = |pid| match tree::stat(pid) {
                Some(stat) if stat.group == self.leader.as_raw_pid() => Meant::Below,
                Some(_) | None => Meant::All,
            };
            tree::signal_below(getpid(), signal, meant);
        }
    }

    /// Kills everything that is there now.
    pub(super) fn kill(&self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        self.signal_group(Signal::KILL);
        tree::signal_below(getpid(), Signal::KILL, |_| Meant::All);
    }

    /// Reaps what has ended, and says what is new.
    pub(super) fn reap(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        if !self.has_ended {
            let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
            if let Ok(Some(status)) = waitid(WaitId::Pid(self.leader), stopped) {
                news.extend(status.stopping_signal().map(News::Stopped));
            }
            if let Some(status) = end_of(self.leader) {
                let exited = status.exit_status().map(|code| code << 8);
                news.push(News::Ended(exited.or(status.terminating_signal()).unwrap_or(0)));
                self.has_ended = true;
            }
        }
        let mut others = false;
        for child in tree::children_of(getpid()) {
            if child != self.leader {
                others |= !matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(Some(_)));
            }
        }
        if self.has_ended && !others {
            self.is_reaped = true;
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            // Exact: who is left would be a child, or below one.
            let nobody = wait(WaitOptions::NOHANG).err() == Some(Errno::CHILD);
            if nobody && !self.cgroup.as_ref().is_some_and(Cgroup::has_members) {
                self.cgroup = None;
                news.push(News::Empty);
            }
        }
        news
    }
}

/// How this child has ended, if it has: seen, and not reaped.
fn end_of(child: Pid) -> Option<WaitIdStatus> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(child), look).ok().flatten()
}
