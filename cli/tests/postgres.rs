//! The same command over a real PostgreSQL server.

use crate::common::{SOON, Sandbox, exit_code, journeys, json};
use crate::endpoint::metric;
use std::time::Duration;
use tenure_testkit::{FaultProxy, Postgres, block_on, eventually, free_port};

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
fn contenders_take_turns_and_tokens_rise() {
    journeys::contenders_take_turns_and_tokens_rise(&sandbox("pg-turns"));
}

#[test]
fn step_down_hands_over_and_no_wait_ends_at_once() {
    journeys::step_down_hands_over_and_no_wait_ends_at_once(&sandbox("pg-hand-over"));
}

#[test]
fn claims_refusals_and_bumps_beside_the_leases_in_postgres() {
    crate::fence::course(&sandbox("pg-fence"), &[]);
}

#[test]
fn gc_keeps_what_was_used_lately() {
    journeys::gc_keeps_what_was_used_lately(&sandbox("pg-gc"));
}

#[test]
fn doctor_status_and_fences_read_postgres() {
    let sandbox = sandbox("pg-doctor");
    let doctor = sandbox.tenure(&["doctor", "--output", "json"]);
    // The servers of the tests flush nothing.
    assert_eq!(doctor.code, 82, "{doctor:?}");
    let told = json(&doctor.stdout);
    assert_eq!(told["store"]["kind"], "postgres");
    assert!(told["fence_only"].is_string(), "{doctor:?}");
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
fn a_counted_mark_in_postgres_is_bumped_by_counting_by_the_command() {
    journeys::a_counted_mark_is_bumped_by_counting(&sandbox("pg-counted"));
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

#[test]
fn guarding_a_table_anew_for_another_resource_is_told_by_the_command_for_postgres() {
    let sandbox = sandbox("pg-anew");
    block_on(block_on(Postgres::shared()).execute("CREATE TABLE cli_anew (id int)")).unwrap();
    journeys::guarding_a_table_anew_for_another_resource_is_told(&sandbox, &["cli_anew"]);
}

/// Its leader died in it, and the server has not heard of that.
#[test]
fn claim_that_may_wait_waits_for_a_transaction_that_was_left_open() {
    let sandbox = sandbox("pg-open");
    let claim = |token: &'static str, wait: &'static str| {
        sandbox.tenure(&[
            "fence", "claim", "ledger", "--lease", "job", "--token", token, "--wait", wait,
        ])
    };
    let first = claim("7", "0s");
    assert_eq!(first.code, 0, "{first:?}");
    let open = std::thread::spawn(|| {
        // For longer than one claim waits, and than another does.
        let left = "BEGIN; SELECT cli_pg_open.enter('ledger', 'job', 7); SELECT pg_sleep(12); COMMIT";
        block_on(async { Postgres::shared().await.execute(left).await })
    });
    eventually(Duration::from_secs(60), "that it is open", || {
        claim("8", "0s").code == 69
    });
    let late = claim("8", "5m");
    assert_eq!(late.code, 0, "{late:?}");
    assert!(late.stdout.contains("after term 7"), "{late:?}");
    assert!(late.stderr.contains("claiming again for up to 5m"), "{late:?}");
    open.join().unwrap().unwrap();
}

#[test]
fn claim_that_may_wait_waits_for_a_database_that_is_away() {
    let _made = sandbox("pg-away");
    let proxy = FaultProxy::postgres(format!("127.0.0.1:{}", free_port())).unwrap();
    let url = format!(
        "postgres://postgres@{}/postgres?schema=cli_pg_away",
        proxy.address()
    );
    let sandbox = Sandbox::at("pg-away-claims", &url);
    let claim = ["fence", "claim", "ledger", "--lease", "job", "--token", "7"];
    let at_once = sandbox.tenure(&claim);
    assert_eq!(at_once.code, 69, "{at_once:?}");
    let waiting = sandbox.start(&[&claim[..], &["--wait", "5m"]].concat());
    waiting
        .wait_for_line("claiming again for up to 5m", SOON)
        .unwrap();
    proxy.lead_to(block_on(Postgres::shared()).address());
    assert!(waiting.wait_for_exit(SOON).unwrap().success());
}

/// Nobody is left to guess: the message has the command that sets the schema up, and its statements can be
/// had.
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
fn wrong_credentials_end_with_77_and_are_not_printed() {
    let server = block_on(Postgres::with_passwords()).unwrap();
    let secret = "hunter2-secret";
    let url = server.uri_as("postgres", Some(secret), "postgres");
    journeys::wrong_credentials_end_with_77_and_are_not_printed(&url, secret);
}

/// What a run says of a term that its store does not take back. `spoil` is SQL for the administrator, with
/// the schema in it, once the work runs.
fn not_given_back(label: &str, user: &str, spoil: &str) -> serde_json::Value {
    let server = block_on(Postgres::shared());
    let sandbox = sandbox(label);
    let schema = format!("cli_{}", label.replace('-', "_"));
    let as_administrator = |sql: &str| {
        let sql = sql.replace("{schema}", &schema);
        block_on(server.execute(&sql)).unwrap();
    };
    as_administrator(
        "CREATE ROLE {schema} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {schema};
         GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO {schema}",
    );
    let user = user.replace("{schema}", &schema);
    let store = format!(
        "postgres://{user}@{}/postgres?sslmode=disable&schema={schema}",
        server.address()
    );
    // No renewal meets it before the work has ended. And of what goes well nothing is to be said.
    let process = sandbox.run(
        &[
            "--quiet", "--ttl", "60s", "--renew", "20s", "--output", "json", "--store", &store,
        ],
        "job",
        "while [ ! -e go ]; do sleep 0.05; done; exit 4",
    );
    sandbox.until_held("job");
    as_administrator(spoil);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(exit_code(&process), 4, "the code is the command's");
    let line = process.wait_for_line("\"not_given_back\"", SOON).unwrap();
    let lease = sandbox.lease("job");
    assert_eq!(lease["state"], "held", "{lease}");
    let said = json(&line.text);
    assert_eq!(
        (&said["lease"], &said["token"]),
        (&json_text("job"), &lease["token"])
    );
    let remaining = said["remaining_ms"].as_u64().unwrap();
    assert!(remaining > 0 && remaining <= 120_000, "{said}");
    let message = said["message"].as_str().unwrap();
    assert!(message.contains(said["why"].as_str().unwrap()), "{said}");
    assert!(message.contains("tenure doctor"), "{said}");
    // A busy store may leave the end out.
    let history = json(&sandbox.tenure(&["history", "job", "--output", "json"]).stdout);
    let end = history["terms"][0]["end"].as_str().unwrap_or_default();
    assert!(end.is_empty() || end.contains("; not confirmed: "), "{history}");
    said
}

fn json_text(text: &str) -> serde_json::Value {
    serde_json::Value::from(text)
}

#[test]
fn the_reason_why_postgres_does_not_take_a_lease_back_is_said() {
    let full = not_given_back(
        "pg-full-at-end",
        "postgres",
        "CREATE FUNCTION {schema}.no_room() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$;
         CREATE TRIGGER no_room BEFORE UPDATE ON {schema}.leases
         FOR EACH ROW WHEN (OLD.name = 'job') EXECUTE FUNCTION {schema}.no_room()",
    );
    assert_eq!(full["fault"], "full", "{full}");
    assert!(
        full["why"].as_str().unwrap().contains("no space left on device"),
        "{full}"
    );
    let forbidden = not_given_back(
        "pg-rights-at-end",
        "{schema}",
        "REVOKE UPDATE ON {schema}.leases FROM {schema}",
    );
    assert_eq!(forbidden["fault"], "forbidden", "{forbidden}");
}

/// As after `pg_upgrade` or a restore. The stop before it has had the one line of its own kind of fault, and
/// is no news to who hears errors alone.
#[test]
fn another_store_is_told_to_waiters_after_the_outage_before_it_and_is_tried_on() {
    let holder = sandbox("pg-another");
    let (ours, strange) = (
        block_on(Postgres::shared()).address(),
        block_on(Postgres::start()).unwrap(),
    );
    let proxy = FaultProxy::postgres(&ours).unwrap();
    let url = format!(
        "postgres://postgres@{}/postgres?schema=cli_pg_another",
        proxy.address()
    );
    let sandbox = Sandbox::at("pg-another-waiters", &url);
    let held = holder.run(&["--ttl", "5s"], "job", "sleep 300");
    holder.until_held("job");
    let pages = format!("127.0.0.1:{}", free_port());
    let start = |options: &[&str]| {
        sandbox.start(&[&["run", "--ttl", "5s"], options, &["job", "--", "true"]].concat())
    };
    let waiting = start(&[]);
    waiting.wait_for_line("waiting; held by", SOON).unwrap();
    let quiet = start(&["--quiet", "--metrics", &pages]);
    eventually(SOON, "a standby", || {
        metric(&pages, "lease_terms{lease=\"job\"}") == Some(1.0)
    });
    let failures = |reason: &str| {
        let line = format!("lease_acquisition_failures{{lease=\"job\",reason=\"{reason}\"}}");
        metric(&pages, &line).unwrap_or_default()
    };

    proxy.lead_to(format!("127.0.0.1:{}", free_port()));
    proxy.cut_connections();
    let told = waiting.wait_for_line("trying on", SOON).unwrap();
    assert!(!told.text.contains("is of cluster"), "{}", told.text);
    eventually(SOON, "the outage", || failures("unreachable") > 0.0);

    proxy.lead_to(strange.address());
    for process in [&waiting, &quiet] {
        let told = process.wait_for_line("is of cluster", SOON).unwrap();
        assert!(told.text.contains("start this process anew"), "{}", told.text);
        assert!(told.text.contains("trying on"), "{}", told.text);
    }
    eventually(SOON, "a reason of its own, and no outage", || {
        let outage = metric(
            &pages,
            "lease_store_unreachable_since_timestamp_seconds{lease=\"job\"}",
        );
        failures("another_store") > 0.0 && outage == Some(0.0)
    });

    held.kill_all_at_once();
    proxy.lead_to(&ours);
    for process in [&waiting, &quiet] {
        assert_eq!(exit_code(process), 0);
    }
}
