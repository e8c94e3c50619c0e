//! The same command over a real MariaDB server.

use crate::common::{SOON, Sandbox, UNHURRIED, exit_code, journeys, json};
use tenure_testkit::{FaultProxy, Mariadb, block_on, free_port};

/// A store with a database of the test's own, which is set up by the command itself.
fn sandbox(label: &str) -> Sandbox {
    let sandbox = bare_sandbox(label);
    let made = sandbox.tenure(&["store", "init"]);
    assert_eq!(made.code, 0, "{made:?}");
    sandbox
}

fn bare_sandbox(label: &str) -> Sandbox {
    let server = block_on(Mariadb::shared());
    let database = database(label);
    block_on(server.execute(&format!("CREATE DATABASE {database}"))).unwrap();
    Sandbox::at(label, &server.uri_of(&database))
}

fn database(label: &str) -> String {
    format!("cli_{}", label.replace('-', "_"))
}

/// As on every store, and nobody waits for a ttl.
#[test]
fn contenders_on_mysql_take_turns_at_once_and_tokens_rise() {
    let sandbox = sandbox("my-turns");
    let log = sandbox.path("log");
    let script = format!("echo start $TENURE_TOKEN >> {log}; sleep 0.2; echo end $TENURE_TOKEN >> {log}");
    let contenders: Vec<_> = (0..3)
        .map(|_| sandbox.run(&["--ttl", "3m"], "job", &script))
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
fn step_down_on_mysql_ends_the_term_and_the_standby_follows_at_once() {
    let sandbox = sandbox("my-hand-over");
    let first = sandbox.run(&["--ttl", "3m", "--candidate", "one"], "job", "sleep 300");
    sandbox.until_held("job");
    let refused = sandbox.tenure(&["run", "--no-wait", "--ttl", UNHURRIED, "job", "--", "true"]);
    assert_eq!((refused.code, refused.stderr.as_str()), (75, ""));
    let second = sandbox.run(&["--candidate", "two"], "job", "echo mine");
    second.wait_for_line("waiting", SOON).unwrap();
    let ended = sandbox.tenure(&["step-down", "job", "--wait", "30s", "--output", "json"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(json(&ended.stdout)["ended"]["holder"], "one");
    assert_eq!(exit_code(&first), 79);
    second.wait_for_line("mine", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
}

#[test]
fn behind_a_silent_network_the_command_dies_before_the_deadline() {
    let direct = sandbox("my-silent");
    let server = block_on(Mariadb::shared());
    let proxy = FaultProxy::mysql(server.address()).unwrap();
    let url = format!("mysql://root@{}/{}", proxy.address(), database("my-silent"));
    let silent = Sandbox::at("my-silent-through", &url);
    journeys::behind_a_silent_network_the_command_dies_before_the_deadline(&silent, &direct, &proxy);
}

#[test]
fn claims_refusals_and_bumps_beside_the_leases_in_mysql() {
    crate::fence::course(&sandbox("my-fence"), &[]);
}

#[test]
fn gc_keeps_what_was_used_lately() {
    journeys::gc_keeps_what_was_used_lately(&sandbox("my-gc"));
}

#[test]
fn a_store_that_is_not_there_is_said_to_be_unavailable() {
    let url = format!("mysql://root@127.0.0.1:{}/jobs", free_port());
    journeys::a_store_that_is_not_there_is_said_to_be_unavailable(&url);
}

#[test]
fn doctor_status_explain_and_fences_read_mysql() {
    let sandbox = sandbox("my-doctor");
    let doctor = sandbox.tenure(&["doctor", "--output", "json"]);
    // The servers of the tests flush nothing.
    assert_eq!(doctor.code, 82, "{doctor:?}");
    let told = json(&doctor.stdout);
    assert_eq!(told["store"]["kind"], "mysql");
    assert!(told["fence_only"].is_string(), "{doctor:?}");
    assert_eq!(sandbox.tenure(&["explain"]).code, 0);
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
fn a_counted_mark_in_mysql_is_bumped_by_counting_by_the_command() {
    journeys::a_counted_mark_is_bumped_by_counting(&sandbox("my-counted"));
}

#[test]
fn guarded_table_of_mysql_refuses_whoever_shows_no_term() {
    let sandbox = sandbox("my-guard");
    let server = block_on(Mariadb::shared());
    let uri = server.uri_of(&database("my-guard"));
    let write = |statements: &str| block_on(Mariadb::execute_at(&uri, statements));
    write("CREATE TABLE account (id INT)").unwrap();
    let guarded = sandbox.tenure(&["fence", "guard", "ledger", "--table", "account"]);
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
    write("INSERT INTO account VALUES (1)").unwrap_err();
    let entered = format!(
        "START TRANSACTION; CALL tenure_enter_1('ledger', 'job', {token}); INSERT INTO account VALUES (1); COMMIT"
    );
    write(&entered).unwrap();
    let unguarded = sandbox.tenure(&["fence", "unguard", "--table", "account"]);
    assert_eq!(unguarded.code, 0, "{unguarded:?}");
    write("INSERT INTO account VALUES (2)").unwrap();
}

#[test]
fn guarding_a_table_anew_for_another_resource_is_told_by_the_command_for_mysql() {
    let sandbox = sandbox("my-anew");
    let uri = block_on(Mariadb::shared()).uri_of(&database("my-anew"));
    block_on(Mariadb::execute_at(&uri, "CREATE TABLE account (id INT)")).unwrap();
    journeys::guarding_a_table_anew_for_another_resource_is_told(&sandbox, &["account"]);
}

/// Nobody is left to guess: the message has the command that makes the tables, and its statements can be had,
/// for the command-line client.
#[test]
fn tables_that_were_not_made_are_said_and_their_statements_are_printed() {
    let sandbox = bare_sandbox("my-bare");
    let refused = sandbox.tenure(&["run", "job", "--", "touch", "ran"]);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(refused.stderr.contains("tenure store init"), "{refused:?}");
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    let printed = sandbox.tenure(&["store", "init", "--print"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    let uri = block_on(Mariadb::shared()).uri_of(&database("my-bare"));
    let statements = printed.stdout.split_once("DELIMITER $$\n").unwrap().1;
    let statements = statements.split_once("DELIMITER ;").unwrap().0;
    for statement in statements
        .split("\n$$\n")
        .filter(|statement| !statement.is_empty())
    {
        block_on(Mariadb::execute_at(&uri, statement)).unwrap();
    }
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
}

#[test]
fn wrong_credentials_end_with_77_and_are_not_printed() {
    let server = block_on(Mariadb::shared());
    let secret = "hunter2-secret";
    let url = server.uri_as("root", secret, "mysql");
    journeys::wrong_credentials_end_with_77_and_are_not_printed(&url, secret);
}
