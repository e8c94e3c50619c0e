//! The few steps of this crate that the compiler cannot check.

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, set_parent_process_death_signal, setrlimit,
};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure::clock_now;
use tenure::contract::Moment;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The signals with which a terminal stops a group: Ctrl-Z, reading and writing in the background.
const STOPS: [libc::c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// The signals that were blocked when this process was started, once others are.
static BLOCKED_AT_START: OnceLock<libc::sigset_t> = OnceLock::new();

/// This process's group; none, where a PID namespace has been entered without a new session (`unshare --pid
/// --fork`, bubblewrap), so that the group is one outside of it, which has no number here.
#[expect(unsafe_code, reason = "rustix takes it for granted that there is a number")]
pub(super) fn own_group() -> Option<Pid> {
    // SAFETY: it takes nothing, and only answers with a number.
    Pid::from_raw(unsafe { libc::getpgrp() })
}

/// Has the kernel kill the child when the thread that spawns it ends: spawn it from the main thread only.
///
/// A program that changes its user is exempt, as it starts (set-user-id) or later (`setuid`): the kernel
/// forgets the wish.
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
    // system calls, and neither they nor the errors made here allocate, lock or touch memory of other
    // threads.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// Has the child end instead of becoming the command, from `moment` on.
#[expect(
    unsafe_code,
    reason = "`pre_exec` is unsafe; the closure reads the clock and allocates nothing"
)]
pub(crate) fn only_before(command: &mut Command, moment: Moment) {
    let in_child = move || match clock_now() < moment {
        true => Ok(()),
        false => Err(io::ErrorKind::TimedOut.into()),
    };
    // SAFETY: between fork and exec only async-signal-safe functions may run. `clock_gettime` is one, and
    // neither it nor the error made here allocates, locks or touches memory of other threads.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// Has the child write itself into `members`, the list of a control group, before it becomes the command.
/// Where it may not, it starts outside.
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
    // SAFETY: it is open, as was just seen, was inherited for this use, and is taken here alone, before
    // anything else of this process opens or closes a file by number.
    Ok(UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) }))
}

/// Whether these were ignored when this process was started. A broken pipe, as below systemd: Rust's runtime
/// ignores it before `main`, and has no child ignore it. The end of a child, which this process hears, and
/// whoever hears a signal ignores it no more.
static IGNORED_AT_START: [(libc::c_int, AtomicBool); 2] = [
    (libc::SIGPIPE, AtomicBool::new(false)),
    (libc::SIGCHLD, AtomicBool::new(false)),
];

/// Runs before the runtime does.
#[used]
#[expect(unsafe_code, reason = "the loader calls what is named in this section")]
// SAFETY: it is what the section is for, functions of this form; this one asks the kernel, and allocates
// nothing.
#[unsafe(link_section = ".init_array")]
static NOTE_IGNORED: extern "C" fn() = note_ignored;

#[expect(unsafe_code, reason = "a signal's action is filled in by the C library")]
extern "C" fn note_ignored() {
    for (signal, is_ignored) in &IGNORED_AT_START {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: the null pointer changes nothing; all zero, or filled in, it is an action.
        let action = unsafe {
            libc::sigaction(*signal, std::ptr::null(), action.as_mut_ptr());
            action.assume_init()
        };
        is_ignored.store(action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    }
}

/// From here on this process hears `heard` though they were blocked when it was started, and a terminal stops
/// it no more; the file that is answered tells by which signal it would have, to [`next_stop`]. From the main
/// thread, before there is any other: threads inherit it.
///
/// # Errors
/// The kernel refuses.
#[expect(
    unsafe_code,
    reason = "sets of signals are filled in by the C library, and a number becomes a file"
)]
pub(super) fn hear_stops(heard: &[Signal]) -> io::Result<AsyncFd<OwnedFd>> {
    let stops = set_of(&STOPS);
    let mut before = set_of(&[]);
    // SAFETY: both sets are initialised, and live as long as the call.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const stops, &raw mut before) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    BLOCKED_AT_START.get_or_init(|| before);
    let numbers: Vec<libc::c_int> = heard.iter().map(|signal| signal.as_raw()).collect();
    let heard = set_of(&numbers);
    // SAFETY: the set is initialised, and the null pointer asks for nothing.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const heard, std::ptr::null_mut()) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: −1 asks for a new file; the set is initialised.
    let file = unsafe { libc::signalfd(-1, &raw const stops, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if file == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just opened, for this owner.
    readable(unsafe { OwnedFd::from_raw_fd(file) })
}

/// What tells when this file can be read; a handle of a process, when that has ended.
///
/// # Errors
/// The kernel refuses.
#[expect(unsafe_code, reason = "that the file stays the same is asserted")]
pub(crate) fn readable(file: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` has one and the same open file for as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) }?)
}

/// The next signal that a file of [`hear_stops`] tells of.
///
/// # Errors
/// There is none now, or the kernel refuses.
pub(super) fn next_stop(file: &OwnedFd) -> io::Result<Signal> {
    let mut told = [0; size_of::<libc::signalfd_siginfo>()];
    rustix::io::read(file, &mut told)?;
    // Its first field is the signal's number.
    let number = i32::from_ne_bytes([told[0], told[1], told[2], told[3]]);
    Signal::from_named_raw(number).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Stops this process as Ctrl-Z does where nobody hears it: not at all, where nobody could wake it. Returns
/// when it was woken.
#[expect(unsafe_code, reason = "sets of signals are filled in by the C library")]
pub(super) fn suspend() {
    let stop = set_of(&[libc::SIGTSTP]);
    // SAFETY: the set is initialised; the null pointers ask for nothing. The signal is for this thread, which
    // alone lets it in.
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const stop, std::ptr::null_mut());
        libc::raise(libc::SIGTSTP);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const stop, std::ptr::null_mut());
    }
}

/// Ends this process by this signal, so that whoever waits for it sees that. Returns where the kernel does
/// not do it.
#[expect(
    unsafe_code,
    reason = "a signal's action is set, and a set of signals filled in"
)]
pub(crate) fn end_by(signal: Signal) {
    let number = signal.as_raw();
    let only = set_of(&[number]);
    // It has not failed: nobody wants its memory, which may hold a password.
    let no_core = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, no_core);
    // SAFETY: the default action runs no code of this process; the set is initialised, and the null pointer
    // asks for nothing.
    unsafe {
        libc::signal(number, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut());
        libc::raise(number);
    }
}

/// Starts the child with signals as this process was started: those blocked that were before [`hear_stops`],
/// so that a terminal stops it, and a broken pipe and the end of a child ignored where they were.
#[expect(
    unsafe_code,
    reason = "`pre_exec` is unsafe; the closure makes a few system calls and allocates nothing"
)]
pub(crate) fn signals_as_at_start(command: &mut Command) {
    let Some(before) = BLOCKED_AT_START.get().copied() else {
        return;
    };
    let in_child = move || {
        for (signal, is_ignored) in &IGNORED_AT_START {
            if is_ignored.load(Ordering::Relaxed) {
                // SAFETY: to ignore runs no code of this process.
                unsafe { libc::signal(*signal, libc::SIG_IGN) };
            }
        }
        // SAFETY: the set is initialised, and the null pointer asks for nothing.
        match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    };
    // SAFETY: between fork and exec only async-signal-safe functions may run: `signal` is one, and
    // `pthread_sigmask` on Linux a bare system call.
    unsafe {
        command.pre_exec(in_child);
    }
}

#[expect(unsafe_code, reason = "sets of signals are filled in by the C library")]
fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call initialises it, and the others change what is initialised; neither keeps it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// What the kernel corrects the clocks of this machine by, all but the raw one.
pub(crate) struct ClockCorrection {
    /// In 65,536ths of a part of a million.
    pub(crate) frequency: f64,
    /// What one tick counts for, in microseconds.
    pub(crate) tick_us: f64,
}

/// Reads it; nobody needs a right for that, but a container may keep it from everybody.
#[expect(unsafe_code, reason = "a structure is filled in by the C library")]
pub(crate) fn clock_correction() -> io::Result<ClockCorrection> {
    let mut correction = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: it is plain numbers, for which zero is a value; without a mode nothing is set, and all of it is
    // filled in.
    let correction = unsafe {
        if libc::adjtimex(correction.as_mut_ptr()) == -1 {
            return Err(io::Error::last_os_error());
        }
        correction.assume_init()
    };
    Ok(ClockCorrection {
        frequency: correction.freq as f64,
        tick_us: correction.tick as f64,
    })
}
