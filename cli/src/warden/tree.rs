//! The processes below one. Whatever leaves its group or its session stays below whoever adopts orphans.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::read;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Who of a process and those below it is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meant {
    /// All.
    All,
    /// All but the process itself.
    Below,
    /// Nobody.
    None,
}

/// Sends `signal` to everything below `root` that is `meant`. Who is born meanwhile may be missed: ask again
/// until nobody is left.
pub(crate) fn signal_below(root: Pid, signal: Signal, meant: impl Fn(Pid) -> Meant) {
    let mut seen = HashSet::from([root]);
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children_of(parent) {
            let meant = meant(child);
            if meant != Meant::None && seen.insert(child) {
                parents.push(child);
                if meant == Meant::All {
                    signal_child(parent, child, signal);
                }
            }
        }
    }
}

/// Signals `child` if it still is one of `parent`, or was left to somebody: its number may be another's by
/// now.
fn signal_child(parent: Pid, child: Pid, signal: Signal) {
    match pidfd_open(child, PidfdFlags::empty()) {
        Ok(handle) if stat(child).is_some_and(|stat| stat.parent == parent.as_raw_pid()) => {
            // What has just ended, or has got itself other privileges, cannot be signalled; that shows by its
            // being there.
            let _ = pidfd_send_signal(handle, signal);
        }
        // Ended, or adopted: then it is found below its new parent.
        Ok(_) | Err(rustix::io::Errno::SRCH) => {}
        // A kernel before 5.3.
        Err(_) => {
            let _ = kill_process(child, signal);
        }
    }
}

/// The children of a process, the dead ones too that it has not reaped.
pub(crate) fn children_of(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid())) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(numbers) => {
                let numbers = numbers.split_whitespace();
                children.extend(numbers.filter_map(|number| Pid::from_raw(number.parse().ok()?)));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && thread.path().exists() => {
                // A kernel without that list.
                return children_by_search(parent);
            }
            Err(_) => {}
        }
    }
    children
}

fn children_by_search(parent: Pid) -> Vec<Pid> {
    all()
        .filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent.as_raw_pid()))
        .collect()
}

/// The members of a process group that have not ended.
pub(crate) fn living_members_of(group: Pid) -> impl Iterator<Item = Pid> {
    all().filter(move |pid| {
        stat(*pid).is_some_and(|stat| stat.group == group.as_raw_pid() && !matches!(stat.state, 'Z' | 'X'))
    })
}

/// The processes below `root` that have not ended, the first `max` of them.
pub(crate) fn living_below(root: Pid, max: usize) -> Vec<Pid> {
    let mut seen = HashSet::from([root]);
    let (mut parents, mut living) = (vec![root], Vec::new());
    while let Some(parent) = parents.pop() {
        for child in children_of(parent) {
            if !seen.insert(child) {
                continue;
            }
            if living.len() == max {
                return living;
            }
            parents.push(child);
            if stat(child).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X')) {
                living.push(child);
            }
        }
    }
    living
}

/// Whether a thread of this process is stopped: the first one, for which the process's own line speaks, may
/// have ended.
pub(crate) fn is_stopped(pid: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid()));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.any(|thread| stat_in(&thread.path()).is_some_and(|stat| stat.state == 'T'))
}

/// What a process calls itself, for people.
pub(crate) fn name_of(pid: Pid) -> Option<String> {
    let name = fs::read(format!("/proc/{}/comm", pid.as_raw_pid())).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// Whether `/proc` is of this process's PID namespace: elsewhere its number, and those of its children, are
/// others'.
pub(crate) fn shows_own_processes() -> bool {
    let own = fs::read_link("/proc/self");
    let own = own.ok().and_then(|own| own.to_str()?.parse().ok());
    own == Some(getpid().as_raw_pid())
}

/// Every process that can be seen.
fn all() -> impl Iterator<Item = Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?))
}

/// What the kernel tells of a process in one line.
pub(crate) struct Stat {
    /// `T` for a stopped one, `Z` for one that has ended and was not reaped.
    pub(crate) state: char,
    /// Its parent's number.
    pub(crate) parent: i32,
    /// Its group's number.
    pub(crate) group: i32,
}

/// Longest line of `/proc/PID/stat` that matters: number, name, state, parent and group are at its beginning.
const STAT_BYTES: usize = 256;

/// `None` if there is no such process.
pub(crate) fn stat(pid: Pid) -> Option<Stat> {
    stat_in(Path::new(&format!("/proc/{}", pid.as_raw_pid())))
}

/// That of the process, or the thread, whose folder this is.
fn stat_in(folder: &Path) -> Option<Stat> {
    let file = open(
        folder.join("stat"),
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    let mut line = [0; STAT_BYTES];
    let length = read(file, &mut line).ok()?;
    let line = String::from_utf8_lossy(&line[..length]);
    // The name, in parentheses, may hold anything; behind it come state, parent and group.
    let (_, rest) = line.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some(Stat {
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}
