//! The few steps of this crate that the compiler cannot check.

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Has the kernel kill the child when the thread that spawns it ends: spawn it from the main thread only.
///
/// A program that gains privileges as it starts (set-user-id) is exempt: the kernel forgets the wish.
#[expect(
    unsafe_code,
    reason = "`pre_exec` is unsafe; the closure makes two system calls and allocates nothing"
)]
pub(crate) fn die_with_parent(command: &mut Command) {
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

/// Has the child write itself into `members`, the list of a control group, before it becomes the command. Where it may
/// not, it starts outside.
#[expect(
    unsafe_code,
    reason = "`pre_exec` is unsafe; the closure makes one system call and allocates nothing"
)]
pub(crate) fn join(command: &mut Command, members: File) {
    let in_child = move || {
        // 0 stands for the writer itself.
        let _ = rustix::io::write(&members, b"0");
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe functions may run, and `write` is one.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// The socket that this process was started with under this number. No child of this process inherits it.
///
/// # Errors
/// It is no open file.
#[expect(
    unsafe_code,
    reason = "a number becomes a file by assertion; it is checked to be open, and taken once"
)]
pub(crate) fn inherited_socket(number: i32) -> io::Result<UnixStream> {
    if number <= libc::STDERR_FILENO {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: `fcntl` reads or changes a flag of a descriptor, and says so if there is none.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, as was just seen, was inherited for this use, and is taken here alone, before anything else of
    // this process opens or closes a file by number.
    Ok(UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) }))
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
