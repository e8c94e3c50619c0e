//! The one unsafe spot: code that runs in the child between fork and exec.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Has the kernel kill the child when the thread that spawns it ends.
///
/// That is the *thread*, not the process: only [`super::spawner`] may spawn such a command.
#[expect(
    unsafe_code,
    reason = "`pre_exec` is unsafe; the closure makes two system calls and allocates nothing"
)]
pub(super) fn die_with_parent(command: &mut Command) {
    let parent = Pid::from_raw(i32::try_from(std::process::id()).expect("process numbers fit i32"));
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the signal was asked for; then nobody would ever send it.
        if getppid() == parent {
            Ok(())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    };
    // SAFETY: between fork and exec only async-signal-safe functions may run. `prctl` and `getppid` are bare
    // system calls, and neither they nor the errors made here allocate, lock or touch memory of other
    // threads.
    unsafe {
        command.pre_exec(in_child);
    }
}
