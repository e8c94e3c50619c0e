//! Whoever waits for a lock whose store fails meanwhile.

use crate::common::{SOON, Sandbox, exit_code};
use crate::redis::durable;
use std::time::Duration;
use tenure_testkit::{Process, eventually};

/// Who has the lock, for as long as the test lasts.
fn holder(sandbox: &Sandbox) -> Process {
    let work = "echo held >held; exec sleep 300";
    let holder = sandbox.start(&["lock", "--ttl", "60s", "a", "-c", work]);
    sandbox.line("held");
    holder
}

/// Whoever waits for a holder asks the store nothing until that one's ttl is over.
#[test]
fn whoever_waited_in_vain_for_a_store_that_died_meanwhile_is_not_told_of_a_holder() {
    for order in [&[][..], &["--fair"]] {
        for is_killed in [true, false] {
            let mut server = durable();
            let sandbox = Sandbox::at("redis-died", &server.url());
            let _holder = holder(&sandbox);
            let wait = ["-w", "5s", "-E", "0", "--ttl", "20s", "a", "--", "echo", "ran"];
            let waiting = sandbox.start(&[&["lock"], order, &wait].concat());
            waiting.wait_for_line("waiting; held by", SOON).unwrap();
            match is_killed {
                true => server.kill(),
                false => server.freeze(),
            }
            let code = exit_code(&waiting);
            assert_eq!(code, 69, "{order:?} {is_killed}: {:?}", waiting.lines());
            let lines = waiting.lines();
            let last = &lines.last().unwrap().text;
            assert!(
                !last.contains("held by") && last.contains("gave up after"),
                "{last}"
            );
        }
    }
}

/// It stands behind another, and asks for no lock.
#[test]
fn whoever_waits_in_a_queue_that_cannot_be_read_is_told_so_once() {
    const UNREAD: &str = "queue \"a/candidates/\": no answer";
    let server = durable();
    let sandbox = Sandbox::at("redis-unread", &server.url());
    let _holder = holder(&sandbox);
    let stand = |candidate: &str, ttl: &str| {
        let options = ["--fair", "--candidate", candidate, "--ttl", ttl];
        let waiting = sandbox.start(&[&["lock"], &options[..], &["a", "--", "true"]].concat());
        let place = format!("a/candidates/1/{candidate}");
        eventually(SOON, "its place", || sandbox.lease(&place)["state"] == "held");
        waiting
    };
    let _first = stand("first", "60s");
    let behind = stand("behind", "10s");
    server.freeze();
    behind.wait_for_line(UNREAD, SOON).unwrap();
    // Time for more looks, which are not spoken of.
    std::thread::sleep(Duration::from_secs(4));
    let told = behind
        .lines()
        .iter()
        .filter(|line| line.text.contains(UNREAD))
        .count();
    assert_eq!(told, 1, "{:?}", behind.lines());
    server.thaw();
}
