//! Starting the command.

use crate::supervise::system;
use rustix::process::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use tenure::contract::Moment;

/// Starts `words` with this process's environment, in a process group of its own that dies with this process,
/// and as a member of the control group whose list is `members`; not at `kill_at` or later.
///
/// # Errors
/// Of starting it. Nothing runs.
pub(super) fn start(words: &[OsString], members: Option<File>, kill_at: Moment) -> io::Result<Pid> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
    let mut command = Command::new(program);
    command.args(arguments).process_group(0);
    if let Some(members) = members {
        system::join(&mut command, members);
    }
    system::signals_as_at_start(&mut command);
    system::die_with_parent(&mut command);
    // As the last step: whoever was frozen before it, as with the machine, finds the lease another's.
    system::only_before(&mut command, kill_at);
    let child = command.spawn()?;
    // It is reaped with all that is below it; the standard library would only get in the way.
    Ok(Pid::from_child(&child))
}
