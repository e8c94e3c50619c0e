//! A command that fails, or is not well: it is ended, stays out for a while, and another gets to try.

use crate::common::{SOON, Sandbox, children_of, exit_code, signal};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};
use tenure_testkit::{Process, eventually, is_alive};

#[test]
fn a_command_that_is_not_well_is_ended_and_another_leads() {
    let sandbox = Sandbox::new("unwell");
    let script = format!(
        "echo $$ > {}; trap '' TERM; while :; do sleep 0.05; done",
        sandbox.path("pid")
    );
    let first = sandbox.run(
        &[
            "--ttl",
            "1h",
            "--grace",
            "300ms",
            "--health-cmd",
            "test ! -e sick",
            "--health-every",
            "100ms",
        ],
        "job",
        &script,
    );
    let command = sandbox.pid("pid");
    let second = sandbox.run(&["--ttl", "1h"], "job", "echo mine");
    second.wait_for_line("waiting", SOON).unwrap();
    // Well, as often as it is asked.
    std::thread::sleep(Duration::from_millis(600));
    assert!(is_alive(command), "ended without need");
    std::fs::write(sandbox.dir.join("sick"), "").unwrap();
    assert_eq!(exit_code(&first), 79);
    first
        .wait_for_line("--health-cmd failed 3 times in a row", SOON)
        .unwrap();
    assert!(!is_alive(command));
    second.wait_for_line("mine", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
}

/// It would block for ever, with a child that blocks, too.
#[test]
fn a_health_command_that_never_returns_has_failed_and_leaves_nothing_behind() {
    let sandbox = Sandbox::new("hangs");
    let asks = format!("sleep 300 & echo $! >> {}; wait", sandbox.path("asked"));
    let process = sandbox.run(
        &[
            "--health-cmd",
            &asks,
            "--health-every",
            "50ms",
            "--health-timeout",
            "5s",
            "--health-retries",
            "2",
        ],
        "job",
        "sleep 300",
    );
    assert_eq!(exit_code(&process), 79);
    let said = "--health-cmd failed 2 times in a row: no answer within 5s";
    process.wait_for_line(said, SOON).unwrap();
    let asked = sandbox.read("asked");
    let pids: Vec<u32> = asked.lines().map(|pid| pid.parse().unwrap()).collect();
    // A loaded machine may have killed one before it could write.
    assert!(matches!(pids.len(), 1 | 2), "{asked}");
    eventually(SOON, "what was asked is gone", || {
        pids.iter().all(|pid| !is_alive(*pid))
    });
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// They are adopted by tenure, and a term may last for months.
#[test]
fn what_health_commands_leave_behind_is_reaped_while_the_term_lasts() {
    let sandbox = Sandbox::new("zombies");
    let asks = format!(
        "echo asked >> {}; (sleep 0.01 &); sleep 300; true",
        sandbox.path("asked")
    );
    let health = ["--health-cmd", &asks, "--health-timeout", "200ms"];
    let often = ["--health-every", "10ms", "--health-retries", "1000"];
    let process = sandbox.run(&[health, often].concat(), "job", "sleep 300");
    eventually(SOON, "it was asked often", || {
        sandbox.read("asked").lines().count() >= 12
    });
    // The warden, and one that is asked; each of those before has left two.
    eventually(SOON, "the dead are reaped", || children_of(process.pid()) <= 3);
    assert_eq!(process.status(), None);
    // Killed, it would leave the one behind that is asked just then.
    process.terminate();
    assert_eq!(exit_code(&process), 143);
}

#[test]
fn a_health_command_that_is_asked_when_the_term_ends_ends_with_it() {
    let sandbox = Sandbox::new("asked-last");
    let asks = format!("sleep 300 & echo $! > {}; wait; true", sandbox.path("asked"));
    let script = format!("while [ ! -s {} ]; do sleep 0.02; done", sandbox.path("asked"));
    let health = ["--health-cmd", &asks, "--health-every", "10ms"];
    let process = sandbox.run(
        &[&health[..], &["--health-timeout", "5m"]].concat(),
        "job",
        &script,
    );
    assert_eq!(exit_code(&process), 0);
    let asked = sandbox.pid("asked");
    eventually(SOON, "what was asked is gone", || !is_alive(asked));
}

#[test]
fn the_shell_of_a_health_command_ends_with_a_supervisor_that_is_killed() {
    let sandbox = Sandbox::new("asked-in-vain");
    let asks = format!("echo $$ > {}; exec sleep 300", sandbox.path("asked"));
    let health = ["--health-cmd", &asks, "--health-every", "10ms"];
    let process = sandbox.run(
        &[&health[..], &["--health-timeout", "5m"]].concat(),
        "job",
        "exec sleep 300",
    );
    let asked = sandbox.pid("asked");
    signal(process.pid(), Signal::KILL);
    eventually(SOON, "what was asked is gone", || !is_alive(asked));
}

/// However it touches the file; and it finds it where it was started from, though the path was not absolute.
#[test]
fn a_command_that_gives_no_sign_of_life_is_ended_and_another_leads() {
    let sandbox = Sandbox::new("heartbeat");
    let script = format!(
        "cd /; echo $$ > {}; trap '' TERM; while :; do test -e {stuck} || touch \"$TENURE_HEARTBEAT\"; sleep 0.05; done",
        sandbox.path("pid"),
        stuck = sandbox.path("stuck")
    );
    let heartbeat = ["--heartbeat-file", "beat", "--heartbeat-within", "4s"];
    let options = ["--ttl", "1h", "--grace", "300ms"];
    let first = sandbox.run(&[&options[..], &heartbeat].concat(), "job", &script);
    let command = sandbox.pid("pid");
    let second = sandbox.run(&["--ttl", "1h"], "job", "echo mine");
    second.wait_for_line("waiting", SOON).unwrap();
    // Longer than it may be silent.
    std::thread::sleep(Duration::from_secs(5));
    assert!(is_alive(command), "ended without need");
    std::fs::write(sandbox.dir.join("stuck"), "").unwrap();
    assert_eq!(exit_code(&first), 79);
    first.wait_for_line("beat was not touched for 4", SOON).unwrap();
    assert!(!is_alive(command));
    second.wait_for_line("mine", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
}

/// A path is any bytes.
#[test]
fn a_sign_of_life_is_looked_for_where_the_command_gives_it() {
    let sandbox = Sandbox::new("not-utf8");
    let folder = sandbox.dir.join(OsStr::from_bytes(b"n\xff"));
    std::fs::create_dir(&folder).unwrap();
    // For longer than it may be silent.
    let script = "for n in $(seq 25); do touch \"$TENURE_HEARTBEAT\" || exit 3; sleep 0.5; done";
    let heartbeat = ["--heartbeat-file", "beat", "--heartbeat-within", "10s"];
    let job = ["job", "--", "sh", "-c", script];
    let mut command = sandbox.command(&[&["run"], &heartbeat[..], &job].concat());
    command.current_dir(&folder);
    assert_eq!(exit_code(&Process::spawn(command).unwrap()), 0);
    assert!(folder.join("beat").exists());
}

#[test]
fn a_sign_of_life_within_no_time_is_refused() {
    let sandbox = Sandbox::new("no-time");
    for option in ["--heartbeat-within", "--health-every"] {
        let told = sandbox.tenure(&["run", option, "0s", "job", "--", "touch", "ran"]);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.stderr.contains("longer than 0"), "{told:?}");
        assert!(!sandbox.dir.join("ran").exists());
    }
}

#[test]
fn a_heartbeat_file_that_cannot_be_made_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new("no-heartbeat");
    let file = sandbox.path("nowhere/beat");
    let told = sandbox.tenure(&["run", "--heartbeat-file", &file, "job", "--", "touch", "ran"]);
    assert_eq!(told.code, 78, "{told:?}");
    assert_eq!(told.stderr.lines().count(), 1, "{told:?}");
    assert!(
        told.stderr.contains("--heartbeat-file") && told.stderr.contains("lease \"job\""),
        "{told:?}"
    );
    assert!(!sandbox.dir.join("ran").exists());
}

/// A page that answers each request with the status that the file says.
fn page(sandbox: &Sandbox) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/health?of=job", listener.local_addr().unwrap());
    let status = sandbox.dir.join("status");
    std::fs::write(&status, "204 No Content").unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /health?of=job HTTP/1.1\r\nhost: 127.0.0.1:"));
            let status = std::fs::read_to_string(&status).unwrap();
            write!(stream, "HTTP/1.1 {status}\r\nconnection: close\r\n\r\n").unwrap();
        }
    });
    url
}

#[test]
fn a_command_whose_health_page_fails_is_ended() {
    let sandbox = Sandbox::new("unwell-page");
    let url = page(&sandbox);
    let process = sandbox.run(
        &["--ttl", "1h", "--health-http", &url, "--health-every", "50ms"],
        "job",
        "echo running; sleep 300",
    );
    process.wait_for_line("running", SOON).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(sandbox.lease("job")["state"], "held");
    std::fs::write(sandbox.dir.join("status"), "503 Service Unavailable").unwrap();
    assert_eq!(exit_code(&process), 79);
    let line = "--health-http failed 3 times in a row: answered 503";
    process.wait_for_line(line, SOON).unwrap();
    for wrong in ["https://localhost/", "localhost:80", "http:///x"] {
        let told = sandbox.tenure(&["run", "--health-http", wrong, "job", "--", "true"]);
        assert!(
            told.code == 2 && told.stderr.contains("write http://HOST:PORT/PATH"),
            "{told:?}"
        );
    }
}

#[test]
fn hooks_hear_of_each_term_and_one_that_fails_or_hangs_changes_nothing() {
    let sandbox = Sandbox::new("hooks");
    let told = sandbox.path("told");
    let elected = format!("echo elected $TENURE_NAME $TENURE_TOKEN >> {told}; exit 3");
    let lost = format!(
        "echo lost $TENURE_TOKEN $TENURE_WHY >> {told}; sleep 300 & echo $! > {0}; wait",
        sandbox.path("pid")
    );
    let process = sandbox.run(
        &[
            "--on-elected",
            &elected,
            "--on-lost",
            &lost,
            "--hook-timeout",
            "8s",
        ],
        "job",
        "echo token $TENURE_TOKEN; exit 5",
    );
    let token = process.wait_for_line("token ", SOON).unwrap().text;
    let token = token.trim_start_matches("token ");
    assert_eq!(exit_code(&process), 5);
    process.wait_for_line("--on-elected", SOON).unwrap();
    process
        .wait_for_line("failed: no answer within 8s", SOON)
        .unwrap();
    let told = sandbox.read("told");
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    let expected = [
        format!("elected job {token}"),
        format!("lost {token} given back: the command ended with exit status: 5"),
    ];
    assert_eq!(lines, expected);
    let hanging = sandbox.pid("pid");
    eventually(SOON, "what hung is gone", || !is_alive(hanging));
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

#[test]
fn a_command_that_fails_is_run_again_after_a_while_in_which_another_leads() {
    let sandbox = Sandbox::new("restart");
    let script = format!(
        "echo run $TENURE_TOKEN >> {0}; test $(wc -l < {0}) -ge 3",
        sandbox.path("log")
    );
    let began = Instant::now();
    let process = sandbox.run(
        &["--restart", "on-failure", "--cooldown", "300ms"],
        "job",
        &script,
    );
    process.wait_for_line("campaigning again in", SOON).unwrap();
    // Nobody holds it meanwhile.
    let other = sandbox.tenure(&["run", "job", "--", "echo", "mine"]);
    assert_eq!((other.code, other.stdout.as_str()), (0, "mine\n"), "{other:?}");
    assert_eq!(exit_code(&process), 0);
    assert!(
        began.elapsed() >= Duration::from_millis(900),
        "300 ms, then twice as long"
    );
    let log = sandbox.read("log");
    let tokens: Vec<u64> = log
        .lines()
        .map(|line| line["run ".len()..].parse().unwrap())
        .collect();
    assert_eq!(tokens.len(), 3, "{log}");
    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{log}");
}

#[test]
fn a_cooldown_of_all_the_time_there_is_is_one() {
    let sandbox = Sandbox::new("endless-cooldown");
    let options = ["--restart", "on-failure", "--cooldown", "100000000000y"];
    let process = sandbox.run(&options, "job", "exit 3");
    process.wait_for_line("campaigning again in", SOON).unwrap();
    process.terminate();
    assert_eq!(exit_code(&process), 143);
}

#[test]
fn a_signal_ends_the_command_and_the_waiting_whatever_is_to_be_run_again() {
    let sandbox = Sandbox::new("no-restart");
    let script = format!("echo ready > {}; exec sleep 300", sandbox.path("ready"));
    let working = sandbox.run(&["--restart", "always"], "job", &script);
    sandbox.line("ready");
    signal(working.pid(), Signal::TERM);
    assert_eq!(exit_code(&working), 143);
    let out = sandbox.run(&["--restart", "always", "--cooldown", "1h"], "job", "exit 3");
    out.wait_for_line("campaigning again in", SOON).unwrap();
    signal(out.pid(), Signal::TERM);
    assert_eq!(exit_code(&out), 143);
}
