//! Processes that `tenure` has below it and that are no work: what ran before it, and what is left to it.

use crate::common::{SOON, Sandbox, children_of, exit_code, parent_of, signal, until_watched};
use rustix::process::Signal;
use std::process::Command;
use std::time::Duration;
use tenure_testkit::{Process, eventually, is_alive};

/// `tenure` with these arguments, started as the shell of a container's entry point does: `script`, and then
/// it becomes `tenure`.
fn after(sandbox: &Sandbox, script: &str, arguments: &[&str]) -> Process {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{script}; exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_tenure"))
        .args(arguments)
        .env("TENURE_STORE", &sandbox.store)
        .current_dir(sandbox.dir.path());
    Process::spawn(command).unwrap()
}

#[test]
fn what_ran_before_tenure_is_not_ended_with_the_work() {
    let sandbox = Sandbox::new("sidecar");
    let sidecar = "sh -c 'sleep 300 & echo $! > below; wait' & echo $! > sidecar";
    let job = ["run", "job", "--", "sh", "-c", "echo $$ > pid; exec sleep 300"];
    let process = after(&sandbox, sidecar, &job);
    let [work, sidecar, below] = ["pid", "sidecar", "below"].map(|name| sandbox.pid(name));
    until_watched(process.pid());
    signal(parent_of(work), Signal::KILL);
    assert_eq!(exit_code(&process), 79);
    assert!(!is_alive(work), "something was left");
    assert!(is_alive(sidecar) && is_alive(below), "the sidecar was ended");
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// Has this program be started as a process whose first thread ends at once, and whose second sleeps.
const SECOND_THREAD: &str = "TESTS_SECOND_THREAD";

/// Runs before `main`, in the first thread.
#[used]
#[expect(unsafe_code, reason = "the loader calls what is named in this section")]
// SAFETY: it is what the section is for, functions of this form; the environment is there.
#[unsafe(link_section = ".init_array")]
static LEAVE: extern "C" fn() = leave_to_second_thread;

#[expect(
    unsafe_code,
    reason = "no thread but the first one can end it without its process"
)]
extern "C" fn leave_to_second_thread() {
    if std::env::var_os(SECOND_THREAD).is_some() {
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(300)));
        // SAFETY: nothing of this thread is used by the other.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// It looks like one that has ended: of such a process the kernel shows the first thread.
#[test]
fn a_sidecar_whose_first_thread_has_ended_is_not_ended_with_the_work() {
    let sandbox = Sandbox::new("second-thread");
    let program = std::env::current_exe().unwrap();
    let sidecar = format!(
        "{SECOND_THREAD}=1 {} & echo $! > sidecar; until grep -q 'State:.Z' /proc/$!/status; do sleep 0.02; done",
        program.display()
    );
    let job = ["run", "job", "--", "sh", "-c", "echo $$ > pid; exec sleep 300"];
    let process = after(&sandbox, &sidecar, &job);
    let [work, sidecar] = ["pid", "sidecar"].map(|name| sandbox.pid(name));
    until_watched(process.pid());
    signal(parent_of(work), Signal::KILL);
    assert_eq!(exit_code(&process), 79);
    assert!(!is_alive(work), "something was left");
    assert!(is_alive(sidecar), "the sidecar was ended");
}

/// As the first process of a container is left all orphans there.
#[test]
fn who_waits_reaps_what_is_left_to_it() {
    let sandbox = Sandbox::new("reaps");
    let _leader = sandbox.run(&[], "job", "sleep 300");
    sandbox.until_held("job");
    // One of them becomes an orphan in time.
    let children = "sleep 2 & sh -c 'sleep 3 & sleep 1' & true";
    let process = after(&sandbox, children, &["run", "job", "--", "true"]);
    process.wait_for_line("waiting", SOON).unwrap();
    eventually(SOON, "the dead are reaped", || children_of(process.pid()) == 0);
    assert_eq!(process.status(), None);
}

/// The nightly pod lingers for half an hour, and what is run in it from outside (`kubectl exec`) leaves
/// orphans there.
#[test]
fn who_lingers_reaps_what_is_left_to_it() {
    let sandbox = Sandbox::new("reaps-lingering");
    let waits = "until [ -e go ]; do sleep 0.05; done";
    // The second leaves an orphan.
    let children = format!("sh -c '{waits}' & sh -c '({waits}; sleep 2) & {waits}' & true");
    let process = after(
        &sandbox,
        &children,
        &["run", "--linger", "1h", "job", "--", "true"],
    );
    // Said when nothing of the work is left, and its warden has ended.
    process.wait_for_line("the lease is kept", SOON).unwrap();
    eventually(SOON, "both are below it", || children_of(process.pid()) == 2);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    eventually(SOON, "the dead are reaped", || children_of(process.pid()) == 0);
    assert_eq!(process.status(), None);
    process.terminate();
    assert_eq!(exit_code(&process), 0);
}
