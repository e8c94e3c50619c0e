//! `tenure lock` has the habits of flock(1), and its command never outlives the lock.

use crate::common::lifetime::played_again;
use crate::common::{SOON, Sandbox, UNHURRIED, ended, exit_code};
use crate::deadline::{self, ROOMY, STUBBORN};
use std::time::{Duration, Instant};
use tenure_testkit::{Process, eventually, is_alive};

fn hold(sandbox: &Sandbox, options: &[&str]) -> Process {
    let holder = sandbox.start(
        &[
            &["lock"],
            options,
            &["a", "--", "sh", "-c", "echo held; sleep 60"],
        ]
        .concat(),
    );
    holder.wait_for_line("held", SOON).unwrap();
    holder
}

#[test]
fn the_lock_is_held_while_the_command_runs_and_its_exit_code_is_passed_on() {
    let sandbox = Sandbox::new("lock-code");
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143)] {
        let ended = sandbox.tenure(&["lock", "--ttl", UNHURRIED, "a", "--", "sh", "-c", script]);
        assert_eq!(ended.code, code, "{script}: {ended:?}");
        assert_eq!(
            (ended.stdout.as_str(), ended.stderr.as_str()),
            ("", ""),
            "{script}"
        );
        assert_eq!(sandbox.lease("a")["state"], "vacant", "{script}");
    }
    let ended = sandbox.tenure(&["lock", "a", "--", "sh", "-c", "echo $TENURE_NAME $TENURE_TOKEN"]);
    let token = sandbox.lease("a")["token"].to_string();
    assert_eq!(ended.stdout.trim(), format!("a {token}"));
}

#[test]
fn whoever_does_not_get_it_ends_with_one_or_with_the_code_it_asked_for() {
    let sandbox = Sandbox::new("lock-conflict");
    let _holder = hold(&sandbox, &[]);
    let began = Instant::now();
    for (options, code) in [
        (&["--no-wait"][..], 1),
        (&["-n", "-E", "9"][..], 9),
        (&["--nonblock", "-E", "0"][..], 0),
    ] {
        let lock = ["lock", "--ttl", UNHURRIED];
        let ended = sandbox.tenure(&[&lock, options, &["a", "--", "echo", "ran"]].concat());
        assert_eq!(
            (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
            (code, "", ""),
            "{options:?}"
        );
    }
    assert!(began.elapsed() < SOON);
    let began = Instant::now();
    let ended = sandbox.tenure(&["lock", "-w", "400ms", "-E", "8", "a", "--", "echo", "ran"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (8, ""));
    assert!(
        ended.stderr.contains("held by") && ended.stderr.contains("gave up"),
        "{}",
        ended.stderr
    );
    assert!(began.elapsed() >= Duration::from_millis(400));
}

#[test]
fn who_waits_with_fair_is_served_in_the_order_of_coming() {
    let sandbox = Sandbox::new("lock-fair");
    let holder = hold(&sandbox, &[]);
    let log = sandbox.path("log");
    let waiting: Vec<_> = (0..4)
        .map(|number| {
            let script = format!("echo {number} >> {log}");
            let options = ["lock", "--fair", "--candidate", &format!("host-{number}"), "a"];
            let waiting = sandbox.start(&[&options[..], &["--", "sh", "-c", &script]].concat());
            eventually(SOON, "a place in the queue", || {
                let status = sandbox.tenure(&["status", "--output", "json", "--prefix", "a/candidates/"]);
                status.stdout.contains(&format!("a/candidates/1/host-{number}"))
            });
            waiting
        })
        .collect();
    let ended = sandbox.tenure(&["lock", "--fair", "-w", "300ms", "-E", "7", "a", "--", "true"]);
    assert_eq!(ended.code, 7, "{ended:?}");
    assert!(
        ended.stderr.contains("queue has not come; gave up after"),
        "{ended:?}"
    );
    holder.terminate();
    for waiting in &waiting {
        assert_eq!(exit_code(waiting), 0);
    }
    assert_eq!(sandbox.read("log"), "0\n1\n2\n3\n");
}

#[test]
fn a_killed_holder_frees_the_lock_at_once() {
    let sandbox = Sandbox::new("lock-killed");
    let holder = hold(&sandbox, &["--ttl", "1h"]);
    holder.kill_leader();
    let ended = sandbox.tenure(&["lock", "--wait", "20s", "a", "--", "echo", "ran"]);
    assert_eq!((ended.code, ended.stdout.trim()), (0, "ran"), "{ended:?}");
}

#[test]
fn the_command_never_outlives_the_lock() {
    played_again(|| {
        let sandbox = Sandbox::new("lock-lost");
        let work = deadline::numbered(&sandbox, STUBBORN);
        let holder = sandbox.start(&[&["lock"], &ROOMY[..], &["a", "--", "sh", "-c", &work]].concat());
        let command = sandbox.pid("pid");
        let locked = deadline::lock(&sandbox);
        assert!(is_alive(command), "killed without need");
        sandbox.dies_within_its_lease(command, "a")?;
        drop(locked);
        assert_eq!(exit_code(&holder), 79);
        Ok(())
    });
}

#[test]
fn what_is_said_of_a_lock_is_in_its_record_and_its_pages_are_served() {
    let sandbox = Sandbox::new("lock-told");
    let told = ["--candidate", "host-1", "--note", "rack 3", "--ttl", "20s"];
    let address = format!("unix:{}", sandbox.path("pages.sock"));
    let lock = [&["lock"], &told[..], &["--metrics", &address, "a", "--"]].concat();
    let ended = sandbox.tenure(&[&lock[..], &["test", "-S", "pages.sock"]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    let lease = sandbox.lease("a");
    assert_eq!(
        (&lease["last_holder"], &lease["note"], &lease["ttl_ms"]),
        (&"host-1".into(), &"rack 3".into(), &20_000.into())
    );
}

#[test]
fn it_is_used_wrongly_in_one_line() {
    let sandbox = Sandbox::new("lock-usage");
    for (arguments, code, says) in [
        (&["lock", "a"][..], 2, "CMD"),
        (&["lock", "a//b", "--", "true"][..], 78, "a//b"),
        (&["lock", "-n", "-w", "1s", "a", "--", "true"][..], 2, "--wait"),
        (
            &["lock", "a", "--", "/no/such/command"][..],
            127,
            "/no/such/command",
        ),
    ] {
        let ended = sandbox.tenure(arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{arguments:?}: {}", ended.stderr);
    }
}

/// As `flock -w 0`: it is tried once, however short the time is.
#[test]
fn a_wait_of_no_time_takes_what_is_free_and_gives_up_what_is_not() {
    let sandbox = Sandbox::new("wait-zero");
    for options in [
        &["--wait", "0s"][..],
        &["--wait", "1ms"],
        &["--wait", "0s", "--fair"],
    ] {
        let lock = |command| [&["lock"], options, &["a", "--", "sh", "-c", command]].concat();
        let free = sandbox.tenure(&lock("echo ran"));
        assert_eq!(
            (free.code, free.stdout.as_str()),
            (0, "ran\n"),
            "{options:?} {free:?}"
        );
        let holder = sandbox.start(&["lock", "a", "--", "sh", "-c", "sleep 300"]);
        sandbox.until_held("a");
        let held = sandbox.tenure(&lock("echo ran"));
        assert_eq!((held.code, held.stdout.as_str()), (1, ""), "{options:?} {held:?}");
        holder.terminate();
        exit_code(&holder);
    }
}

#[test]
fn a_variable_that_says_no_excludes_nothing() {
    let sandbox = Sandbox::new("says-no");
    for (arguments, variable) in [
        (
            &["run", "--priority", "3", "a", "--", "true"][..],
            "TENURE_NO_WAIT",
        ),
        (&["run", "a", "--", "true"], "TENURE_PREEMPT"),
    ] {
        let mut command = sandbox.command(arguments);
        command.env(variable, "0");
        let ended = ended(command);
        assert_eq!(ended.code, 0, "{arguments:?} {variable}: {ended:?}");
    }
}

/// The file of the leases.
fn leases(sandbox: &Sandbox) -> rusqlite::Connection {
    let leases = rusqlite::Connection::open(sandbox.dir.join("leases.db")).unwrap();
    leases.busy_timeout(SOON).unwrap();
    leases
}

#[test]
fn whoever_waited_in_vain_is_told_who_holds_it_though_an_attempt_had_failed() {
    let sandbox = Sandbox::new("lock-blip");
    // Of a shorter one a loaded machine may miss a renewal, or an attempt that nobody disturbs.
    let holder = hold(&sandbox, &["--ttl", "12s"]);
    let waiting = sandbox.start(&["lock", "--ttl", "12s", "-w", "30s", "-E", "9", "a", "--", "true"]);
    let held = waiting.wait_for_line("held by", SOON).unwrap();
    let leases = leases(&sandbox);
    leases.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // Nobody can give it back or take it from here on.
    holder.kill_all_at_once();
    // So that it does not end meanwhile, as if its holder had renewed it.
    let for_a_minute =
        "UPDATE lease SET ttl_ms = 60000, expires_ns = renewed_ns + 60000000000, version = version + 1";
    leases.execute_batch(for_a_minute).unwrap();
    waiting.wait_for_line_from(held.index, "trying on", SOON).unwrap();
    // Time for more tries, which are not spoken of: they may go on for days.
    std::thread::sleep(Duration::from_secs(4));
    leases.execute_batch("COMMIT").unwrap();
    assert_eq!(exit_code(&waiting), 9);
    let lines = &waiting.lines()[held.index..];
    let said = lines.iter().filter(|line| line.text.contains("trying on"));
    assert_eq!(said.count(), 1, "{lines:?}");
    let last = &lines.last().unwrap().text;
    assert!(last.contains("held by") && last.contains("gave up"), "{lines:?}");
}

#[test]
fn whoever_waits_in_order_is_told_that_the_store_does_not_answer() {
    let sandbox = Sandbox::new("lock-fair-silent");
    assert_eq!(sandbox.tenure(&["lock", "a", "--", "true"]).code, 0);
    let leases = leases(&sandbox);
    leases.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let ended = sandbox.tenure(&["lock", "--fair", "-w", "1s", "-E", "9", "a", "--", "echo", "ran"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (69, ""), "{ended:?}");
}

#[test]
fn a_free_lock_is_tried_in_order_however_short_the_wait() {
    let sandbox = Sandbox::new("lock-fair-short");
    for wait in ["0", "1ms"] {
        let ended = sandbox.tenure(&["lock", "--fair", "-w", wait, "-E", "9", "a", "--", "echo", "ran"]);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (0, "ran\n"),
            "-w {wait}: {ended:?}"
        );
    }
    let _holder = hold(&sandbox, &["--fair"]);
    let held = sandbox.tenure(&["lock", "--fair", "-w", "1ms", "-E", "9", "a", "--", "echo", "ran"]);
    assert_eq!((held.code, held.stdout.as_str()), (9, ""), "{held:?}");
    assert!(held.stderr.contains("held by"), "{held:?}");
    let _first = sandbox.start(&["lock", "--fair", "--candidate", "first", "a", "--", "true"]);
    eventually(SOON, "a place in the queue", || {
        let status = sandbox.tenure(&["status", "--output", "json", "--prefix", "a/candidates/"]);
        status.stdout.contains("a/candidates/1/first")
    });
    let behind = sandbox.tenure(&["lock", "--fair", "-w", "1ms", "-E", "9", "a", "--", "echo", "ran"]);
    assert_eq!((behind.code, behind.stdout.as_str()), (9, ""), "{behind:?}");
    assert!(behind.stderr.contains("turn in the queue"), "{behind:?}");
}
