//! A disk that takes writes and fails to keep them.

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::thread;

/// What the kernel answers instead of syncing: the number of `EIO`, the same on every Linux.
const IO_ERROR: u32 = 5;

/// Runs `work` on a thread of its own for which, and for whose threads, every `fsync` and `fdatasync` of a
/// file fails with an error of the disk; all other calls are as ever, and so is every other thread of the
/// process.
///
/// What is promised to be on disk can be told from what is only with the kernel in this way: the one cannot
/// be had on such a disk, and the other can. A panic of `work` goes on in the caller.
///
/// # Panics
/// Where the kernel has no `seccomp`, or the machine is of an architecture that is not known here.
pub fn on_a_disk_that_fails_to_sync<Outcome: Send>(work: impl FnOnce() -> Outcome + Send) -> Outcome {
    let filtered = || {
        seccompiler::apply_filter(&program())
            .unwrap_or_else(|error| panic!("the kernel takes no filter of system calls: {error}"));
        work()
    };
    thread::scope(|scope| match scope.spawn(filtered).join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn program() -> BpfProgram {
    let always = Vec::new();
    let calls = [(libc::SYS_fsync, always.clone()), (libc::SYS_fdatasync, always)];
    let (otherwise, for_these) = (SeccompAction::Allow, SeccompAction::Errno(IO_ERROR));
    let architecture = std::env::consts::ARCH.try_into();
    architecture
        .and_then(|architecture| {
            SeccompFilter::new(calls.into_iter().collect(), otherwise, for_these, architecture)
        })
        .and_then(BpfProgram::try_from)
        .unwrap_or_else(|error| panic!("no filter of system calls for this machine: {error}"))
}
