//! The same command over a real replica set, and over a network that swallows everything.

use crate::common::{SOON, Sandbox, exit_code, journeys, json};
use tenure_testkit::{FaultProxy, Mongod, Process, ReplicaSet, block_on};

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
    journeys::contenders_take_turns_and_tokens_rise(&sandbox("mongo-turns"));
}

#[test]
fn step_down_hands_over_and_no_wait_ends_at_once() {
    journeys::step_down_hands_over_and_no_wait_ends_at_once(&sandbox("mongo-hand-over"));
}

#[test]
fn gc_keeps_what_was_used_lately() {
    journeys::gc_keeps_what_was_used_lately(&sandbox("mongo-gc"));
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

#[test]
fn behind_a_silent_network_the_command_dies_before_the_deadline() {
    let server = block_on(Mongod::start()).unwrap();
    let proxy = FaultProxy::mongodb(server.address()).unwrap();
    let sandbox = Sandbox::at("silent", &url(&proxy.mongodb_uri(), "silent"));
    let direct = Sandbox::at("silent-direct", &url(&server.uri(), "silent"));
    journeys::behind_a_silent_network_the_command_dies_before_the_deadline(&sandbox, &direct, &proxy);
}

#[test]
fn a_store_that_is_not_there_is_said_to_be_unavailable() {
    for url in ["mongodb://127.0.0.1:1/db", "mongodb://no-such-host.invalid/db"] {
        journeys::a_store_that_is_not_there_is_said_to_be_unavailable(url);
    }
}

#[test]
fn wrong_credentials_end_with_77_and_are_not_printed() {
    let server = block_on(Mongod::with_auth()).unwrap();
    let secret = "hunter2-secret";
    let url = format!(
        "mongodb://somebody:{secret}@{}/db?authSource=admin",
        server.address()
    );
    journeys::wrong_credentials_end_with_77_and_are_not_printed(&url, secret);
}

#[test]
fn the_command_gets_no_password_unless_asked() {
    let server = block_on(Mongod::with_auth()).unwrap();
    let user = server.administrator().unwrap();
    let store = server.uri_as(user);
    let sandbox = Sandbox::at("password", &store);
    let told = |deed: &str, options: &[&str]| {
        let arguments = [&[deed], options, &["job", "--", "sh", "-c", "echo $TENURE_STORE"]].concat();
        let ended = sandbox.tenure(&arguments);
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stdout.trim().to_owned()
    };
    let (_, rest) = store.split_once("://").unwrap();
    let (credentials, _) = rest.rsplit_once('@').unwrap();
    let (_, password) = credentials.split_once(':').unwrap();
    for deed in ["run", "lock"] {
        let passed_on = told(deed, &[]);
        assert!(!passed_on.contains(password), "{passed_on}");
        assert_eq!(told(deed, &["--share-credentials"]), store, "{deed}");
    }
}

#[test]
fn a_standby_outlives_the_outage_of_its_store() {
    let mut server = block_on(Mongod::start()).unwrap();
    let sandbox = Sandbox::at("outlives", &url(&server.uri(), "outlives"));
    // It is to end because its store is gone, and not because a loaded machine renews it late before.
    let first = sandbox.run(&["--ttl", "8s", "--renew", "1s"], "job", "sleep 300");
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
