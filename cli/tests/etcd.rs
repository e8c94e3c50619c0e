//! The same command over a real etcd, a cluster that loses its leader, and a network that swallows
//! everything.

use crate::common::{SOON, Sandbox, journeys, json};
use std::time::Duration;
use tenure_testkit::{Etcd, EtcdOptions, FaultProxy, block_on, eventually, free_port};

fn etcd() -> Etcd {
    block_on(Etcd::start(EtcdOptions::default())).unwrap()
}

#[test]
fn contenders_take_turns_and_tokens_rise() {
    let etcd = etcd();
    journeys::contenders_take_turns_and_tokens_rise(&Sandbox::at("etcd-turns", &etcd.url()));
}

#[test]
fn step_down_hands_over_and_no_wait_ends_at_once() {
    let etcd = etcd();
    let sandbox = Sandbox::at("etcd-hand-over", &etcd.url());
    journeys::step_down_hands_over_and_no_wait_ends_at_once(&sandbox);
}

#[test]
fn gc_keeps_what_was_used_lately_and_says_that_it_takes_two_visits() {
    let etcd = etcd();
    let sandbox = Sandbox::at("etcd-gc", &etcd.url());
    journeys::gc_keeps_what_was_used_lately(&sandbox);
    let looked = sandbox.tenure(&["gc", "--dry-run"]);
    assert!(
        looked.stderr.contains("without --dry-run has noted before"),
        "{looked:?}"
    );
    let cleaned = sandbox.tenure(&["gc"]);
    assert_eq!(
        (cleaned.code, cleaned.stdout.as_str()),
        (0, "0 unused records removed\n")
    );
    assert!(cleaned.stderr.contains("goes at a later gc"), "{cleaned:?}");
    // A crontab's mail.
    let quiet = sandbox.tenure(&["gc", "--quiet"]);
    assert_eq!(
        (quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()),
        (0, "", "")
    );
}

#[test]
fn a_ttl_below_the_servers_shortest_is_refused_with_the_range() {
    let etcd = etcd();
    let sandbox = Sandbox::at("etcd-ttl", &etcd.url());
    let refused = sandbox.tenure(&["run", "--ttl", "500ms", "job", "--", "true"]);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    let (range, store) = ("500ms is outside 1s to", "etcd store");
    assert!(
        refused.stderr.contains(range) && refused.stderr.contains(store),
        "{refused:?}"
    );
}

#[test]
fn doctor_says_how_the_cluster_stands() {
    let etcd = etcd();
    let sandbox = Sandbox::at("etcd-doctor", &etcd.url());
    let doctor = sandbox.tenure(&["doctor", "--output", "json"]);
    let told = json(&doctor.stdout);
    assert_eq!(told["store"]["kind"], "etcd");
    // Which of the two, the server's version decides: Debian's is weak, and has a repair.
    let weak = doctor.stdout.contains("upgrade every member");
    assert_eq!(told["fence_only"].is_string(), weak, "{doctor:?}");
    assert_eq!(doctor.code, if weak { 82 } else { 0 }, "{doctor:?}");
    assert!(doctor.stdout.contains("no alarm rings"), "{doctor:?}");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
    let nobody = Sandbox::at(
        "etcd-nobody",
        &format!("etcd://user:hunter2@127.0.0.1:{}", free_port()),
    );
    let doctor = nobody.tenure(&["doctor"]);
    assert!(doctor.code != 0, "{doctor:?}");
    assert!(!format!("{doctor:?}").contains("hunter2"), "{doctor:?}");
}

/// The store takes requests and never answers.
#[test]
fn behind_a_silent_network_the_command_dies_before_the_deadline() {
    let etcd = etcd();
    let proxy = FaultProxy::bytes(etcd.address(0)).unwrap();
    let sandbox = Sandbox::at("etcd-silent", &format!("etcd://{}", proxy.address()));
    let direct = Sandbox::at("etcd-silent-direct", &etcd.url());
    journeys::behind_a_silent_network_the_command_dies_before_the_deadline(&sandbox, &direct, &proxy);
}

/// The leader of the lease keeps it while the cluster elects another leader.
#[test]
fn a_cluster_that_loses_its_leader_costs_no_leadership() {
    let mut etcd = block_on(Etcd::start(EtcdOptions::three())).unwrap();
    let sandbox = Sandbox::at("etcd-fail-over", &etcd.url());
    // An election of the cluster alone takes a second or two.
    let leading = sandbox.run(&["--ttl", "15s", "--renew", "2s"], "job", "sleep 300");
    sandbox.until_held("job");
    let token = sandbox.lease("job")["token"].clone();
    let leader = eventually(SOON, "a leader", || etcd.leader());
    etcd.kill(leader);
    // Past the end that the lease had when the leader died.
    std::thread::sleep(Duration::from_secs(17));
    assert!(leading.status().is_none(), "the leader gave up");
    let lease = sandbox.lease("job");
    assert_eq!((&lease["token"], &lease["state"]), (&token, &"held".into()));
}
