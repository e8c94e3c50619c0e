//! The same command over a real replica set, and over a network that swallows everything.

#![cfg(feature = "mongodb")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, its functions too"
)]

mod common;

use common::{SOON, Sandbox, bare, ended, exit_code, json};
use std::time::{Duration, Instant};
use tenure_testkit::{Fault, FaultProxy, Mongod, Process, ReplicaSet, block_on, eventually, is_alive};

/// A URL of a database that no other test uses.
fn url(of: &str, database: &str) -> String {
    let (address, query) = of
        .split_once('?')
        .map_or((of, ""), |(address, query)| (address, query));
    let address = address.trim_end_matches('/');
    format!("{address}/{database}?{query}")
}

fn sandbox(label: &str) -> Sandbox {
    let set = block_on(ReplicaSet::shared());
    Sandbox::at(label, &url(&set.uri(), &label.replace('-', "_")))
}

#[test]
fn contenders_take_turns_and_tokens_rise() {
    let sandbox = sandbox("mongo-turns");
    let log = sandbox.path("log");
    let script = format!("echo start $TENURE_TOKEN >> {log}; sleep 0.2; echo end $TENURE_TOKEN >> {log}");
    let contenders: Vec<_> = (0..3)
        .map(|_| sandbox.run(&["--ttl", "10s"], "job", &script))
        .collect();
    for contender in &contenders {
        assert_eq!(exit_code(contender), 0);
    }
    let text = sandbox.read("log");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    let mut highest = 0;
    for turn in lines.chunks(2) {
        let (begun, done) = (turn[0].strip_prefix("start "), turn[1].strip_prefix("end "));
        assert!(begun.is_some() && begun == done, "two ran at once:\n{text}");
        let token: u64 = begun.unwrap().parse().unwrap();
        assert!(token > highest, "a token did not rise:\n{text}");
        highest = token;
    }
}

#[test]
fn step_down_hands_over_and_no_wait_ends_at_once() {
    let sandbox = sandbox("mongo-hand-over");
    let first = sandbox.run(&["--ttl", "3s", "--candidate", "one"], "job", "sleep 300");
    sandbox.until_held("job");
    let refused = sandbox.tenure(&["run", "--no-wait", "job", "--", "true"]);
    assert_eq!((refused.code, refused.stderr.as_str()), (75, ""));
    let second = sandbox.run(&["--candidate", "two"], "job", "echo mine; sleep 300");
    second.wait_for_line("waiting", SOON).unwrap();
    let ended = sandbox.tenure(&["step-down", "job", "--wait", "30s", "--output", "json"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(json(&ended.stdout)["successor"]["holder"], "two");
    assert_eq!(exit_code(&first), 79);
}

#[test]
fn doctor_and_status_read_a_replica_set() {
    let sandbox = sandbox("mongo-doctor");
    let doctor = sandbox.tenure(&["doctor", "--output", "json"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    assert_eq!(json(&doctor.stdout)["store"]["kind"], "mongodb");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// The store takes requests and never answers: the driver alone would wait for ever.
#[test]
fn behind_a_silent_network_the_command_dies_before_the_deadline() {
    let server = block_on(Mongod::start()).unwrap();
    let proxy = FaultProxy::mongodb(server.address()).unwrap();
    let sandbox = Sandbox::at("silent", &url(&proxy.mongodb_uri(), "silent"));
    let direct = Sandbox::at("silent-direct", &url(&server.uri(), "silent"));
    let script = format!(
        "echo $$ > {}; trap '' TERM; while :; do sleep 0.05; done",
        sandbox.path("pid")
    );
    let first = sandbox.run(&["--ttl", "6s", "--grace", "1s"], "job", &script);
    let command = sandbox.pid("pid");
    let second = direct.run(&["--ttl", "6s"], "job", "echo mine");
    second.wait_for_line("waiting", SOON).unwrap();
    proxy.set(Fault::BlackHole);
    // The answer to a renewal may have been swallowed: what counts is what the store says from now on.
    eventually(SOON, "the last renewal is through", || {
        direct.lease("job")["renewed_ago_ms"].as_u64() > Some(2_500)
    });
    let asked = Instant::now();
    let remaining = direct.lease("job")["remaining_ms"].as_u64().unwrap();
    while is_alive(command) {
        let late = asked.elapsed() >= Duration::from_millis(remaining);
        assert!(!late, "the command outlived the lease");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(exit_code(&first), 79);
    second.wait_for_line("mine", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
}

#[test]
fn a_store_that_is_not_there_is_said_to_be_unavailable() {
    for url in ["mongodb://127.0.0.1:1/db", "mongodb://no-such-host.invalid/db"] {
        let sandbox = Sandbox::at("nowhere", url);
        let ended = sandbox.tenure(&["run", "job", "--", "touch", "ran"]);
        assert_eq!(ended.code, 69, "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains("lease \"job\""), "{ended:?}");
        assert!(!sandbox.dir.join("ran").exists());
    }
}

#[test]
fn wrong_credentials_end_with_77_and_are_not_printed() {
    let server = block_on(Mongod::with_auth()).unwrap();
    let address = server.address();
    let secret = "hunter2-secret";
    let ended = ended({
        let mut command = bare(&["run", "job", "--", "true"]);
        command.env(
            "TENURE_STORE",
            format!("mongodb://somebody:{secret}@{address}/db?authSource=admin"),
        );
        command
    });
    assert_eq!(ended.code, 77, "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains(secret), "{ended:?}");
}

#[test]
fn the_command_gets_no_password_unless_asked() {
    let server = block_on(Mongod::with_auth()).unwrap();
    let user = server.administrator().unwrap();
    let store = server.uri_as(user);
    let sandbox = Sandbox::at("password", &store);
    let run = |options: &[&str]| {
        let arguments = [
            &["run"],
            options,
            &["job", "--", "sh", "-c", "echo $TENURE_STORE"],
        ]
        .concat();
        let ended = sandbox.tenure(&arguments);
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stdout.trim().to_owned()
    };
    let passed_on = run(&[]);
    let (_, rest) = store.split_once("://").unwrap();
    let (credentials, _) = rest.rsplit_once('@').unwrap();
    let (_, password) = credentials.split_once(':').unwrap();
    assert!(!passed_on.contains(password), "{passed_on}");
    assert_eq!(run(&["--share-credentials"]), store);
}

#[test]
fn a_standby_outlives_the_outage_of_its_store() {
    let mut server = block_on(Mongod::start()).unwrap();
    let sandbox = Sandbox::at("outlives", &url(&server.uri(), "outlives"));
    let first = sandbox.run(&["--ttl", "3s"], "job", "sleep 300");
    sandbox.until_held("job");
    let second: Process = sandbox.run(&["--ttl", "3s"], "job", "echo mine");
    second.wait_for_line("waiting", SOON).unwrap();
    server.kill();
    // The leader ends its command; the standby goes on trying.
    assert_eq!(exit_code(&first), 79);
    second.wait_for_line("trying on", SOON).unwrap();
    block_on(server.restart()).unwrap();
    second.wait_for_line("mine", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
}
