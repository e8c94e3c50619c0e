//! `tenure fence`, from a shell script's side, over real files, a real MongoDB and a real Redis.

use crate::common::{Ended, Sandbox, json};
use rusqlite::Connection;
use serde_json::Value;

fn fence(sandbox: &Sandbox, arguments: &[&str]) -> Ended {
    sandbox.tenure(&[&["fence"], arguments].concat())
}

fn term<'a>(deed: &'a str, lease: &'a str, token: &'a str) -> [&'a str; 6] {
    [deed, "ledger", "--lease", lease, "--token", token]
}

#[track_caller]
fn refused(ended: &Ended, code: i32, part: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains(part), "{ended:?}");
}

fn marks(sandbox: &Sandbox, options: &[&str]) -> Value {
    let ended = fence(sandbox, &[&["show", "--output", "json"], options].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    json(&ended.stdout)["fences"].clone()
}

/// The whole course at one place: claim, succession, refusals, bump.
fn course(sandbox: &Sandbox, place: &[&str]) {
    let at = |arguments: &[&str]| fence(sandbox, &[arguments, place].concat());
    refused(&at(&term("check", "nightly", "5")), 81, "has not claimed");
    assert_eq!(at(&term("claim", "nightly", "5")).code, 0);
    assert_eq!(at(&term("check", "nightly", "5")).code, 0);
    let claimed = at(&term("claim", "nightly", "9"));
    assert_eq!(
        claimed.stdout,
        "resource \"ledger\": term 9 of \"nightly\" has claimed it, after term 5\n"
    );
    refused(&at(&term("check", "nightly", "5")), 80, "stale");
    refused(&at(&term("claim", "nightly", "5")), 80, "stale");
    refused(&at(&term("check", "nightly", "10")), 81, "has not claimed");
    refused(
        &at(&term("claim", "hourly", "10")),
        78,
        "belongs to lease \"nightly\"",
    );
    refused(
        &at(&term("claim", "nightly", "9000000000000000000")),
        78,
        "from the future",
    );
    refused(&at(&term("claim", "nightly", "0")), 78, "a fencing token is");
    let mark = &marks(sandbox, place)[0];
    assert_eq!(
        (mark["mark"].as_u64(), mark["refused"].as_u64()),
        (Some(9), Some(5)),
        "{mark}"
    );
    let bumped = at(&["bump", "ledger", "--above", "2000000000000", "--output", "json"]);
    assert_eq!(
        json(&bumped.stdout)["mark"].as_u64(),
        Some(2_000_000_000_001),
        "{bumped:?}"
    );
    refused(&at(&term("check", "nightly", "9")), 80, "stale");
}

#[test]
fn claims_refusals_and_bumps_beside_the_leases() {
    let sandbox = Sandbox::new("fence");
    assert_eq!(fence(&sandbox, &["show"]).stdout, "no fences\n");
    course(&sandbox, &[]);
}

#[test]
fn claims_refusals_and_bumps_in_a_file_of_the_users() {
    let sandbox = Sandbox::new("fence");
    Connection::open(sandbox.path("ledger.db"))
        .unwrap()
        .execute_batch("CREATE TABLE x (y)")
        .unwrap();
    course(
        &sandbox,
        &["--fence", &format!("sqlite:{}", sandbox.path("ledger.db"))],
    );
}

#[test]
fn claims_refusals_and_bumps_in_a_watermark() {
    let sandbox = Sandbox::new("fence");
    course(&sandbox, &["--fence", &format!("file:{}", sandbox.path("marks"))]);
}

#[cfg(feature = "mongodb")]
#[test]
fn claims_refusals_and_bumps_in_mongodb() {
    use tenure_testkit::{ReplicaSet, block_on};
    let sandbox = Sandbox::new("fence");
    let set = block_on(ReplicaSet::shared()).uri();
    let (address, query) = set.split_once('?').unwrap_or((&set, ""));
    let url = format!(
        "{}/cli_fence_{}?{query}",
        address.trim_end_matches('/'),
        std::process::id()
    );
    course(&sandbox, &["--fence", &url]);
}

#[cfg(feature = "redis")]
#[test]
fn claims_refusals_and_bumps_in_redis() {
    use tenure_testkit::{RedisOptions, RedisServer, block_on};
    let sandbox = Sandbox::new("fence");
    let server = block_on(RedisServer::start(RedisOptions::default())).unwrap();
    course(&sandbox, &["--fence", &server.url()]);
}

#[cfg(feature = "etcd")]
#[test]
fn claims_refusals_and_bumps_in_etcd() {
    use tenure_testkit::{Etcd, EtcdOptions, block_on};
    let sandbox = Sandbox::new("fence");
    let etcd = block_on(Etcd::start(EtcdOptions::default())).unwrap();
    course(&sandbox, &["--fence", &etcd.url()]);
}

#[test]
fn a_command_claims_with_the_term_that_runs_it() {
    let sandbox = Sandbox::new("fence");
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let script = format!("{tenure} fence claim ledger && {tenure} fence check ledger");
    let ended = sandbox.tenure(&["run", "nightly", "--", "sh", "-c", &script]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let lease = sandbox.lease("nightly");
    let mark = &marks(&sandbox, &[])[0];
    assert_eq!(
        (&mark["mark"], &mark["lease"]),
        (&lease["token"], &"nightly".into())
    );
    // The record of the lease is beside the mark: what it has not granted is from the future.
    let next = (lease["token"].as_u64().unwrap() + 1).to_string();
    refused(
        &fence(&sandbox, &term("claim", "nightly", &next)),
        78,
        "has granted at most",
    );
    // The token of the environment is not any other lease's.
    let mut command = sandbox.command(&["fence", "claim", "ledger", "--lease", "hourly"]);
    command.env("TENURE_NAME", "nightly").env("TENURE_TOKEN", "7");
    refused(&crate::common::ended(command), 2, "TENURE_TOKEN");
    refused(
        &fence(&sandbox, &["claim", "ledger", "--token", "7"]),
        2,
        "--lease",
    );
}

#[test]
fn status_shows_the_marks_and_how_many_were_refused() {
    let sandbox = Sandbox::new("fence");
    let plain = sandbox.tenure(&["status"]);
    assert!(!plain.stdout.contains("MARK"), "{plain:?}");
    fence(&sandbox, &term("claim", "nightly", "9"));
    for _ in 0..3 {
        assert_eq!(fence(&sandbox, &term("check", "nightly", "5")).code, 80);
    }
    let status = sandbox.tenure(&["status"]).stdout;
    let line = status.lines().last().unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["ledger", "nightly", "9", "3", "5"],
        "{status}"
    );
    let status = json(&sandbox.tenure(&["status", "--output", "json"]).stdout);
    assert_eq!(status["fences"][0]["refused"].as_u64(), Some(3), "{status}");
    // Of the leases that are asked for.
    let status = json(&sandbox.tenure(&["status", "hourly", "--output", "json"]).stdout);
    assert_eq!(status["fences"], Value::Array(vec![]), "{status}");
    let wrong = sandbox.tenure(&["status", "--fence", "nowhere"]);
    refused(&wrong, 78, "sqlite:PATH");
}

#[test]
fn a_table_is_guarded_and_let_go() {
    let sandbox = Sandbox::new("fence");
    let url = format!("sqlite:{}", sandbox.path("ledger.db"));
    let connection = Connection::open(sandbox.path("ledger.db")).unwrap();
    connection
        .execute_batch("CREATE TABLE account (cents INTEGER)")
        .unwrap();
    let guard = ["guard", "ledger", "--table", "account", "--fence", &url];
    refused(&fence(&sandbox, &guard), 78, "ADD COLUMN \"fence\" INTEGER");
    connection
        .execute_batch("ALTER TABLE account ADD COLUMN \"fence\" INTEGER")
        .unwrap();
    assert_eq!(fence(&sandbox, &guard).code, 0);
    assert_eq!(
        fence(
            &sandbox,
            &[&term("claim", "nightly", "9")[..], &["--fence", &url]].concat()
        )
        .code,
        0
    );
    connection
        .execute("INSERT INTO account VALUES (1, 5)", [])
        .unwrap_err();
    connection
        .execute("INSERT INTO account VALUES (1, 9)", [])
        .unwrap();
    let unguard = ["unguard", "--table", "account", "--fence", &url];
    assert_eq!(fence(&sandbox, &unguard).code, 0);
    connection
        .execute("INSERT INTO account VALUES (1, 5)", [])
        .unwrap();
    refused(
        &fence(&sandbox, &["unguard", "--table", "account"]),
        2,
        "--fence sqlite:PATH",
    );
}
