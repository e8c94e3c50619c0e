//! The end of a run whose store is away as the lease is to be given back. With a ttl of an hour: nobody else
//! waits for long.

use crate::common::{SOON, Sandbox, exit_code, json};
use crate::deadline::{lock, numbered};
use rusqlite::Connection;
use std::time::Duration;
use tenure_testkit::{Process, eventually, is_alive};

/// A run whose work has ended with 4, in a store that takes no writes for as long as the connection lives.
fn leaving(sandbox: &Sandbox) -> (Process, Connection) {
    let script = numbered(sandbox, "while [ ! -e end ]; do sleep 0.05; done; exit 4");
    let process = sandbox.run(&["--ttl", "1h"], "job", &script);
    let command = sandbox.pid("pid");
    let locked = lock(sandbox);
    std::fs::write(sandbox.dir.join("end"), "").unwrap();
    eventually(SOON, "the work is gone", || !is_alive(command));
    (process, locked)
}

#[test]
fn a_lease_with_a_long_ttl_is_given_back_soon_after_the_store_is_back() {
    let sandbox = Sandbox::new("back-again");
    let (process, locked) = leaving(&sandbox);
    // SQLite has given up by then, once.
    std::thread::sleep(Duration::from_secs(4));
    drop(locked);
    assert_eq!(exit_code(&process), 4);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

#[test]
fn a_signal_ends_the_waiting_for_a_store_that_does_not_take_the_lease_back() {
    let sandbox = Sandbox::new("impatient");
    let (process, _locked) = leaving(&sandbox);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(process.status(), None, "it waits for the store");
    process.terminate();
    assert_eq!(exit_code(&process), 4, "the code is the command's");
    process.wait_for_line("could not be given back", SOON).unwrap();
    assert_eq!(sandbox.lease("job")["state"], "held");
}

/// Who has sent it would rather kill than wait for a part of the ttl.
#[test]
fn a_store_that_is_away_when_a_signal_has_ended_the_work_is_not_waited_for_for_long() {
    let sandbox = Sandbox::new("asked-to-end");
    let process = sandbox.run(&["--ttl", "1h"], "job", "echo $$ > pid; exec sleep 300");
    sandbox.pid("pid");
    let _locked = lock(&sandbox);
    process.terminate();
    assert_eq!(exit_code(&process), 143);
    process.wait_for_line("could not be given back", SOON).unwrap();
    assert_eq!(sandbox.lease("job")["state"], "held");
}

/// Its place in the queue is held by a lease of its own, which the store does not take back either.
#[test]
fn whoever_waits_in_order_leaves_a_store_that_is_away_soon() {
    let sandbox = Sandbox::new("leaves-a-queue");
    let _holder = sandbox.run(&["--ttl", "1h"], "job", "sleep 300");
    sandbox.until_held("job");
    let waiter = sandbox.run(&["--ttl", "1h", "--priority", "4"], "job", "touch ran");
    let place = [
        "status",
        "--prefix",
        "job/candidates/",
        "--all",
        "--output",
        "json",
    ];
    eventually(SOON, "it has a place", || {
        json(&sandbox.tenure(&place).stdout)["leases"][0]["state"] == "held"
    });
    let _locked = lock(&sandbox);
    waiter.terminate();
    assert_eq!(exit_code(&waiter), 143);
    assert!(!sandbox.dir.join("ran").exists());
}
