//! The two steps of this crate that the compiler cannot check.

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Has the kernel kill the child when the thread that spawns it ends: spawn it from the main thread only.
///
/// A program that gains privileges as it starts (set-user-id) is exempt: the kernel forgets the wish.
#[expect(
    unsafe_code,
    reason = "`pre_exec` is unsafe; the closure makes two system calls and allocates nothing"
)]
pub(super) fn die_with_parent(command: &mut Command) {
    let parent: Pid = getpid();
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the wish was made; then nobody would ever send the signal.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    };
    // SAFETY: between fork and exec only async-signal-safe functions may run. `prctl` and `getppid` are bare
    // system calls, and neither they nor the errors made here allocate, lock or touch memory of other threads.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// Does `work` while SIGTTOU is ignored: a process in the background that sets its terminal's foreground
/// group is stopped otherwise.
#[expect(
    unsafe_code,
    reason = "setting a signal's disposition is unsafe; it is set to SIG_IGN and back"
)]
pub(super) fn ignoring_terminal_output_stop<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: SIG_IGN installs no code, and what is put back is what was there. Only the main thread sets
    // dispositions in this process, and it starts no child meanwhile, which would inherit this one.
    let before = unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
    let outcome = work();
    if before != libc::SIG_ERR {
        // SAFETY: as above.
        unsafe {
            libc::signal(libc::SIGTTOU, before);
        }
    }
    outcome
}
