//! A control group of its own for the work, where one may be made: the kernel kills all of it in one step,
//! and knows when nothing is left, however quickly its members fork.

use rustix::process::{Pid, getpid, test_kill_process};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What the names of these groups begin with; the warden's number follows.
const PREFIX: &str = "tenure-";

/// How many groups are removed at once, of those that the work has made below its own; the next sweep goes
/// on.
const REMOVED_MAX: usize = 1000;

/// A control group (version 2) for one command. Dropping it removes it, if it is empty.
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes one below this process's own.
    ///
    /// # Errors
    /// There is no version 2, or this process may not.
    pub(super) fn make() -> io::Result<Self> {
        let group = Self(made_below(&own_group()?)?);
        // Only whoever can kill it has use for it: Linux 5.14.
        OpenOptions::new().write(true).open(group.0.join("cgroup.kill"))?;
        Ok(group)
    }

    /// The file that a process writes 0 to, to become a member.
    ///
    /// # Errors
    /// This process may not.
    pub(super) fn members(&self) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(self.0.join("cgroup.procs"))
    }

    /// Kills every member, in one step.
    pub(super) fn kill(&self) {
        // What it does not reach, the walk over the children does.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }

    /// Whether it has a living member.
    pub(super) fn has_members(&self) -> bool {
        has_members(&self.0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Whether a living process is in it, or in one below it.
fn has_members(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.events"))
        .is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
}

/// Removes a group with those below it, which a `tenure run` in the work has made for one: if all are empty.
/// Whoever makes groups here is a member itself, so none is taken from under its hands.
fn remove(group: &Path) {
    if has_members(group) {
        return;
    }
    let mut groups = vec![group.to_owned()];
    let mut next = 0;
    while let Some(parent) = groups.get(next).filter(|_| groups.len() < REMOVED_MAX) {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        groups.extend(below);
        next += 1;
    }
    // Those below come after their parent. The kernel refuses to remove one that somebody is in, or below.
    for group in groups.iter().rev() {
        let _ = fs::remove_dir(group);
    }
}

/// Makes a folder for this process's group.
fn made_below(own: &Path) -> io::Result<PathBuf> {
    sweep(own);
    let path = own.join(format!("{PREFIX}{}", getpid().as_raw_pid()));
    fs::create_dir(&path)?;
    Ok(path)
}

/// Removes what wardens have left that were killed, one of this process's number too: in a PID namespace, as
/// of a container that is started again, each warden has the same.
fn sweep(own: &Path) {
    for group in fs::read_dir(own).into_iter().flatten().flatten() {
        let name = group.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
        if let Some(pid) = number.and_then(Pid::from_raw)
            && (pid == getpid() || test_kill_process(pid).is_err())
        {
            remove(&group.path());
        }
    }
}

/// The folder of this process's group.
fn own_group() -> io::Result<PathBuf> {
    let absent = || io::Error::new(io::ErrorKind::NotFound, "no control group of version 2");
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let group = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or_else(absent)?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let (root, place) = mounts
        .lines()
        .filter(|line| {
            line.split(" - ")
                .nth(1)
                .is_some_and(|rest| rest.starts_with("cgroup2 "))
        })
        .find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            Some((*fields.get(3)?, *fields.get(4)?))
        })
        .ok_or_else(absent)?;
    let below = Path::new(group).strip_prefix(root).map_err(|_| absent())?;
    Ok(Path::new(place).join(below))
}

#[cfg(test)]
mod tests {
    use super::{PREFIX, made_below};
    use std::fs;
    use std::process::id;
    use tenure_testkit::ScratchDir;

    #[test]
    fn what_a_killed_warden_of_the_same_number_has_left_is_in_nobodys_way() {
        let own = ScratchDir::new("same-number");
        let alive = own.join(format!("{PREFIX}1"));
        for left in [&alive, &own.join(format!("{PREFIX}{}", id())), &own.join("other")] {
            fs::create_dir(left).unwrap();
        }
        let made = made_below(own.path()).unwrap();
        assert_eq!(made, own.join(format!("{PREFIX}{}", id())));
        assert!(alive.exists() && own.join("other").exists());
    }
}
