//! The same command over a real PostgreSQL server.

#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, its functions too"
)]

mod common;

use common::{SOON, Sandbox, bare, ended, exit_code, json};
use tenure_testkit::{Postgres, block_on};

/// A store with a schema of the test's own, which is set up by the command itself.
fn sandbox(label: &str) -> Sandbox {
    let sandbox = bare_sandbox(label);
    let made = sandbox.tenure(&["store", "init"]);
    assert_eq!(made.code, 0, "{made:?}");
    sandbox
}

fn bare_sandbox(label: &str) -> Sandbox {
    let server = block_on(Postgres::shared());
    let schema = format!("cli_{}", label.replace('-', "_"));
    Sandbox::at(label, &format!("{}?schema={schema}", server.uri()))
}

#[test]
fn contenders_take_turns_and_tokens_rise_in_postgres() {
    let sandbox = sandbox("pg-turns");
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
fn step_down_hands_over_in_postgres() {
    let sandbox = sandbox("pg-hand-over");
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
fn doctor_status_and_fences_read_postgres() {
    let sandbox = sandbox("pg-doctor");
    let doctor = sandbox.tenure(&["doctor", "--output", "json"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    assert_eq!(json(&doctor.stdout)["store"]["kind"], "postgres");
    let claim = sandbox.tenure(&[
        "run",
        "job",
        "--",
        "sh",
        "-c",
        "$0 fence claim ledger",
        env!("CARGO_BIN_EXE_tenure"),
    ]);
    // The command of `run` gets the URL without a password, and this one has none.
    assert_eq!(claim.code, 0, "{claim:?}");
    let status = json(&sandbox.tenure(&["status", "--output", "json"]).stdout);
    assert_eq!(status["leases"][0]["state"], "vacant", "{status}");
    assert_eq!(
        status["fences"][0]["mark"], status["leases"][0]["token"],
        "{status}"
    );
    let token = status["leases"][0]["token"].as_u64().unwrap();
    let stale = (token - 1).to_string();
    let refused = sandbox.tenure(&["fence", "check", "ledger", "--lease", "job", "--token", &stale]);
    assert_eq!(refused.code, 80, "{refused:?}");
    let bumped = sandbox.tenure(&["fence", "bump", "ledger", "--output", "json"]);
    assert_eq!(bumped.code, 0, "{bumped:?}");
    assert!(json(&bumped.stdout)["mark"].as_u64().unwrap() > token);
    assert_eq!(json(&bumped.stdout)["refused"], 1, "{bumped:?}");
}

#[test]
fn guarded_table_refuses_whoever_has_not_entered() {
    let sandbox = sandbox("pg-guard");
    let server = block_on(Postgres::shared());
    block_on(server.execute("CREATE TABLE cli_account (id int)")).unwrap();
    let write = |statements: &str| block_on(server.execute(statements));
    let guarded = sandbox.tenure(&["fence", "guard", "ledger", "--table", "cli_account"]);
    assert_eq!(guarded.code, 0, "{guarded:?}");
    let claim = "$0 fence claim ledger; echo $TENURE_TOKEN";
    let ran = sandbox.tenure(&[
        "run",
        "job",
        "--",
        "sh",
        "-c",
        claim,
        env!("CARGO_BIN_EXE_tenure"),
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let token = ran.stdout.trim().lines().last().unwrap().to_owned();
    write("INSERT INTO cli_account VALUES (1)").unwrap_err();
    let entered = format!(
        "BEGIN; SELECT cli_pg_guard.enter('ledger', 'job', {token}); INSERT INTO cli_account VALUES (1); COMMIT"
    );
    write(&entered).unwrap();
    let unguarded = sandbox.tenure(&["fence", "unguard", "--table", "cli_account"]);
    assert_eq!(unguarded.code, 0, "{unguarded:?}");
    write("INSERT INTO cli_account VALUES (2)").unwrap();
}

/// Nobody is left to guess: the message has the command that sets the schema up, and its statements can be had.
#[test]
fn schema_that_was_not_set_up_is_said_and_its_statements_are_printed() {
    let sandbox = bare_sandbox("pg-bare");
    let refused = sandbox.tenure(&["run", "job", "--", "touch", "ran"]);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(refused.stderr.contains("tenure store init"), "{refused:?}");
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    let printed = sandbox.tenure(&["store", "init", "--print"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    block_on(block_on(Postgres::shared()).execute(&printed.stdout)).unwrap();
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
}

#[test]
fn wrong_password_of_postgres_ends_with_77_and_is_not_printed() {
    let server = block_on(Postgres::with_passwords()).unwrap();
    let secret = "hunter2-secret";
    let ended = ended({
        let mut command = bare(&["run", "job", "--", "true"]);
        command.env(
            "TENURE_STORE",
            server.uri_as("postgres", Some(secret), "postgres"),
        );
        command
    });
    assert_eq!(ended.code, 77, "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains(secret), "{ended:?}");
}
