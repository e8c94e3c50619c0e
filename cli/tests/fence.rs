//! `tenure fence`, from a shell script's side, over real files and real servers.

use crate::common::{Ended, Sandbox, journeys, json};
use rusqlite::Connection;
use serde_json::Value;

pub fn fence(sandbox: &Sandbox, arguments: &[&str]) -> Ended {
    sandbox.tenure(&[&["fence"], arguments].concat())
}

pub fn term<'a>(deed: &'a str, lease: &'a str, token: &'a str) -> [&'a str; 6] {
    [deed, "ledger", "--lease", lease, "--token", token]
}

#[track_caller]
pub fn refused(ended: &Ended, code: i32, part: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains(part), "{ended:?}");
}

pub fn marks(sandbox: &Sandbox, options: &[&str]) -> Value {
    let ended = fence(sandbox, &[&["show", "--output", "json"], options].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    json(&ended.stdout)["fences"].clone()
}

/// An SQLite file that holds data of the user's; as a fence's URL.
pub fn users_file(sandbox: &Sandbox) -> String {
    Connection::open(sandbox.path("ledger.db"))
        .unwrap()
        .execute_batch("CREATE TABLE x (y)")
        .unwrap();
    format!("sqlite:{}", sandbox.path("ledger.db"))
}

/// The whole course at one place: claim, succession, refusals, bump.
pub fn course(sandbox: &Sandbox, place: &[&str]) {
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
        &at(&term("claim", "nightly", "200000000000000")),
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
    assert_eq!(mark["bumped"], false);
    let bumped = at(&["bump", "ledger", "--above", "1000", "--output", "json"]);
    assert_eq!(json(&bumped.stdout)["mark"].as_u64(), Some(1_001), "{bumped:?}");
    assert_eq!(marks(sandbox, place)[0]["bumped"], true);
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
    let url = users_file(&sandbox);
    course(&sandbox, &["--fence", &url]);
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

#[cfg(feature = "nats")]
#[test]
fn claims_refusals_and_bumps_in_nats() {
    use tenure_testkit::{NatsOptions, NatsServer, block_on};
    let sandbox = Sandbox::new("fence");
    let server = block_on(NatsServer::start(NatsOptions::default())).unwrap();
    course(&sandbox, &["--fence", &format!("{}/marks", server.url())]);
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

/// Beside the leases and elsewhere: it hides neither them nor another mark.
#[test]
fn a_damaged_mark_is_shown_with_all_others_and_the_exit_code_says_so() {
    let sandbox = Sandbox::new("fence");
    assert_eq!(sandbox.tenure(&["run", "nightly", "--", "true"]).code, 0);
    let url = users_file(&sandbox);
    for (place, file) in [(&[][..], "leases.db"), (&["--fence", &url], "ledger.db")] {
        for resource in ["a", "ledger", "z"] {
            let claim = ["claim", resource, "--lease", "hourly", "--token", "9"];
            assert_eq!(fence(&sandbox, &[&claim[..], place].concat()).code, 0);
        }
        Connection::open(sandbox.path(file))
            .unwrap()
            .execute_batch("UPDATE tenure_fence SET token = -5 WHERE resource = 'ledger'")
            .unwrap();
        for asked in [&["status"][..], &["fence", "show"]] {
            let asked = [asked, place].concat();
            let shown = sandbox.tenure(&asked);
            assert_eq!((shown.code, shown.stderr.as_str()), (65, ""), "{shown:?}");
            let lines: Vec<Vec<&str>> = shown
                .stdout
                .lines()
                .map(|line| line.split_whitespace().take(4).collect())
                .collect();
            let marks = &lines[lines.len() - 3..];
            assert_eq!(marks[0], ["a", "hourly", "9", "0"], "{shown:?}");
            assert_eq!(marks[1], ["ledger", "-", "unreadable", "-"], "{shown:?}");
            assert_eq!(marks[2], ["z", "hourly", "9", "0"], "{shown:?}");
            let shown = sandbox.tenure(&[&asked[..], &["--output", "json"]].concat());
            assert_eq!(shown.code, 65, "{shown:?}");
            let marks = &json(&shown.stdout)["fences"];
            assert_eq!(marks[0]["mark"].as_u64(), Some(9), "{shown:?}");
            assert!(marks[1]["mark"].is_null(), "{shown:?}");
            assert!(
                marks[1]["error"].as_str().unwrap().contains("ledger"),
                "{shown:?}"
            );
            assert_eq!(marks[2]["resource"], "z", "{shown:?}");
        }
        let one = fence(&sandbox, &[&["show", "z", "ledger"], place].concat());
        assert_eq!((one.code, one.stdout.lines().count()), (65, 3), "{one:?}");
    }
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

#[test]
fn guarding_a_table_anew_for_another_resource_is_told_by_the_command() {
    let sandbox = Sandbox::new("fence");
    Connection::open(sandbox.path("ledger.db"))
        .unwrap()
        .execute_batch("CREATE TABLE account (cents INTEGER, fence INTEGER)")
        .unwrap();
    let url = format!("sqlite:{}", sandbox.path("ledger.db"));
    let table = ["account", "--fence", &url];
    journeys::guarding_a_table_anew_for_another_resource_is_told(&sandbox, &table);
}

#[test]
fn the_number_of_a_bumped_mark_is_nobodys_until_it_is_claimed() {
    let sandbox = Sandbox::new("fence");
    let url = format!("sqlite:{}", sandbox.path("ledger.db"));
    let connection = Connection::open(sandbox.path("ledger.db")).unwrap();
    connection
        .execute_batch("CREATE TABLE account (cents INTEGER, fence INTEGER)")
        .unwrap();
    let at = |arguments: &[&str]| fence(&sandbox, &[arguments, &["--fence", &url]].concat());
    assert_eq!(at(&["guard", "ledger", "--table", "account"]).code, 0);
    assert_eq!(at(&term("claim", "nightly", "7")).code, 0);
    let bumped = at(&["bump", "ledger", "--above", "1000", "--output", "json"]);
    let mark = json(&bumped.stdout)["mark"].to_string();
    refused(&at(&term("check", "nightly", &mark)), 81, "has not claimed");
    let insertion = format!("INSERT INTO account VALUES (1, {mark})");
    connection.execute(&insertion, []).unwrap_err();
    refused(
        &at(&term("claim", "hourly", &mark)),
        78,
        "belongs to lease \"nightly\"",
    );
    assert_eq!(at(&term("claim", "nightly", &mark)).code, 0);
    assert_eq!(connection.execute(&insertion, []), Ok(1));
}

/// The fence is elsewhere, and its clock says nothing of the first token.
#[test]
fn a_first_token_that_the_named_store_has_not_granted_is_from_the_future() {
    let sandbox = Sandbox::new("fence");
    assert_eq!(sandbox.tenure(&["run", "nightly", "--", "true"]).code, 0);
    let granted = sandbox.lease("nightly")["token"].as_u64().unwrap();
    let url = users_file(&sandbox);
    let claim = |lease: &str, token: u64| {
        let token = token.to_string();
        fence(
            &sandbox,
            &[&term("claim", lease, &token)[..], &["--fence", &url]].concat(),
        )
    };
    refused(&claim("nightly", granted + 1), 78, "has granted at most");
    assert_eq!(claim("nightly", granted).code, 0);
    assert_eq!(claim("nightly", granted).code, 0);
}

#[test]
fn a_watermark_that_a_service_has_open_can_be_looked_at_and_not_raised() {
    let sandbox = Sandbox::new("fence-watermark-open");
    let url = format!("file:{}", sandbox.path("marks"));
    let at = ["--fence", &url];
    let claimed = fence(
        &sandbox,
        &[&term("claim", "job", "1700000000007")[..], &at].concat(),
    );
    assert_eq!(claimed.code, 0, "{claimed:?}");
    let service = tenure::Watermark::open(sandbox.path("marks")).unwrap();
    assert_eq!(marks(&sandbox, &at)[0]["mark"].as_u64(), Some(1_700_000_000_007));
    refused(
        &fence(&sandbox, &[&["bump", "ledger"][..], &at].concat()),
        69,
        "marks",
    );
    drop(service);
    assert_eq!(fence(&sandbox, &[&["bump", "ledger"][..], &at].concat()).code, 0);
}
