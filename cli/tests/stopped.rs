//! A warden that is stopped, and cannot say that the work has ended, or one that has said it to a `tenure`
//! that was stopped: the lease would be renewed for ever.

use crate::common::{SOON, Sandbox, exit_code, parent_of, signal, until_watched};
use crate::deadline::STUBBORN;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;
use tenure_testkit::{Process, eventually, is_alive};

/// A term whose command ends with 5 when the file `go` is there; and its warden, which is stopped.
fn stopped(sandbox: &Sandbox) -> (Process, u32) {
    let script = "echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; exit 5";
    let process = sandbox.run(&["--ttl", "20s", "--renew", "1s"], "job", script);
    let warden = parent_of(sandbox.pid("pid"));
    until_watched(process.pid());
    signal(warden, Signal::STOP);
    (process, warden)
}

/// Of a process that may have ended just now.
fn signal_if_there(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = kill_process(pid, signal);
}

#[test]
fn a_stopped_warden_goes_on_when_the_command_has_ended() {
    let sandbox = Sandbox::new("stopped-warden");
    let (process, warden) = stopped(&sandbox);
    // Nothing is amiss while the command works, over several renewals.
    std::thread::sleep(Duration::from_secs(4));
    let status = std::fs::read_to_string(format!("/proc/{warden}/status")).unwrap();
    assert!(status.contains("State:\tT"), "{status}");
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(exit_code(&process), 5);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

#[test]
fn a_warden_that_is_stopped_again_and_again_keeps_no_lease() {
    let sandbox = Sandbox::new("stopped-again");
    let (process, warden) = stopped(&sandbox);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    eventually(SOON, "tenure ends", || {
        signal_if_there(warden, Signal::STOP);
        process.status().is_some()
    });
    // The last time may have been after the end: nobody else would wake it.
    signal_if_there(warden, Signal::KILL);
    // Whether the warden has come to speak in between is a matter of chance.
    assert!(matches!(exit_code(&process), 5 | 79));
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// A host that stalls right after SIGKILL: the warden's answer is there when `tenure` goes on, and its time
/// is over, too.
#[test]
fn a_tenure_that_is_held_up_when_its_work_is_killed_gives_the_lease_back() {
    let sandbox = Sandbox::new("held-up");
    let script = format!("echo $$ > {}; {STUBBORN}", sandbox.path("pid"));
    let process = sandbox.run(&["--ttl", "60s", "--grace", "300ms"], "job", &script);
    let work = sandbox.pid("pid");
    until_watched(process.pid());
    let warden = parent_of(work);
    signal(warden, Signal::STOP);
    process.terminate();
    // The grace is over, and the warden's second is not; on a machine that is late nothing is held up, and
    // all ends as well.
    std::thread::sleep(Duration::from_millis(800));
    signal_if_there(process.pid(), Signal::STOP);
    signal_if_there(warden, Signal::CONT);
    std::thread::sleep(Duration::from_secs(2));
    signal_if_there(process.pid(), Signal::CONT);
    assert_eq!(exit_code(&process), 137);
    assert!(!is_alive(work));
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}
