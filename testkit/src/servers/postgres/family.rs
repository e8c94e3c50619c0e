//! A server that is many processes: signals to its group do not reach them, as each leads a session of its
//! own.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::unprivileged;
use crate::error::Error;
use crate::eventually::eventually;

/// Stops the parent first, so that no child is born meanwhile, then its children. Returns when all have
/// stopped.
pub(super) fn freeze(parent: u32) {
    signal(parent, Signal::STOP);
    let family = || children(parent).into_iter().chain([parent]);
    eventually(PATIENCE, "stop of a server and its children", || {
        // A child that has ended stays a zombie, as its parent stands still.
        let running: Vec<u32> = family()
            .filter(|pid| matches!(state(*pid), Some('R' | 'S' | 'D')))
            .collect();
        running.iter().for_each(|pid| signal(*pid, Signal::STOP));
        running.is_empty()
    });
}

/// Lets a frozen family go on, the children first.
pub(super) fn thaw(parent: u32) {
    for pid in children(parent).into_iter().chain([parent]) {
        signal(pid, Signal::CONT);
    }
}

/// Kills the parent and its children, and returns when none is left: a child that outlives its parent would
/// keep the server from starting again.
pub(super) fn kill(parent: u32) {
    signal(parent, Signal::STOP);
    let children = children(parent);
    for pid in children.iter().copied().chain([parent]) {
        signal(pid, Signal::KILL);
    }
    eventually(PATIENCE, "end of a killed server's children", || {
        children
            .iter()
            .all(|pid| matches!(state(*pid), None | Some('Z' | 'X')))
    });
}

/// A process that has ended meanwhile needs no signal.
fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        kill_process(pid, signal).unwrap_or_default();
    }
}

/// Lets no process of the family make a file larger than so many bytes, or again as large as it likes. What
/// is born later inherits it.
///
/// By a program that runs as the family's user: of another's processes even root may not be allowed to say
/// it.
pub(super) fn limit_files(parent: u32, bytes_max: Option<u64>) -> Result<(), Error> {
    let limit = bytes_max.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    for pid in [parent].into_iter().chain(children(parent)) {
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--pid={pid}"))
            .arg(format!("--fsize={limit}:"));
        unprivileged::run(&mut command);
        let limited = command.output().map_err(Error::system("starting prlimit"))?;
        if !limited.status.success() && fields(pid).is_some() {
            return Err(Error::Fetch(format!(
                "prlimit does not limit the files of process {pid}: {}",
                String::from_utf8_lossy(&limited.stderr).trim()
            )));
        }
    }
    Ok(())
}

fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| fields(*pid).is_some_and(|(_, of)| of == parent))
        .collect()
}

fn state(pid: u32) -> Option<char> {
    fields(pid).map(|(state, _)| state)
}

/// State and parent of a process.
fn fields(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Long, as a loaded machine may need it.
const PATIENCE: Duration = Duration::from_secs(30);
