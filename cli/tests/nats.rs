//! The same command over a real NATS, alone and in a cluster, and a network that swallows everything.

use crate::common::journeys;
use crate::common::{SOON, Sandbox, bare, ended, exit_code, json, parent_of, signal, until_watched};
use rustix::process::Signal;
use std::time::{Duration, Instant};
use tenure_testkit::{
    Fault, FaultProxy, NatsCluster, NatsOptions, NatsServer, SelfSigned, block_on, eventually, is_alive,
};

fn durable() -> NatsServer {
    block_on(NatsServer::start(NatsOptions::durable())).unwrap()
}

#[test]
fn contenders_take_turns_and_tokens_rise() {
    let server = durable();
    journeys::contenders_take_turns_and_tokens_rise(&Sandbox::at("nats-turns", &server.url()));
}

#[test]
fn step_down_hands_over_and_no_wait_ends_at_once() {
    let server = durable();
    let sandbox = Sandbox::at("nats-hand-over", &format!("{}/app", server.url()));
    journeys::step_down_hands_over_and_no_wait_ends_at_once(&sandbox);
}

#[test]
fn gc_keeps_what_was_used_lately() {
    let server = durable();
    journeys::gc_keeps_what_was_used_lately(&Sandbox::at("nats-gc", &server.url()));
}

#[test]
fn doctor_says_what_a_bucket_is_worth() {
    let server = durable();
    let monitored = format!("{}?monitor={}", server.url(), server.monitor_address());
    let sandbox = Sandbox::at("nats-doctor", &monitored);
    let doctor = sandbox.tenure(&["doctor", "--output", "json"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    assert_eq!(json(&doctor.stdout)["store"]["kind"], "nats");
    assert!(doctor.stdout.contains("scratch always"), "{doctor:?}");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
    let unheard = Sandbox::at("nats-unheard", &server.url()).tenure(&["doctor"]);
    assert_eq!(unheard.code, 82, "{unheard:?}");
    assert!(unheard.stdout.contains("monitor="), "{unheard:?}");
}

/// Each new process has seen the dead one's record for no time at all.
#[test]
fn one_attempt_after_the_holder_has_died_wins_when_its_ttl_is_over() {
    let server = durable();
    let sandbox = Sandbox::at("nats-crashed", &server.url());
    let first = sandbox.run(&["--ttl", "4s"], "job", "echo $$ > pid; exec sleep 300");
    let warden = parent_of(sandbox.pid("pid"));
    until_watched(first.pid());
    // Both at once, as with the machine: nobody gives the lease back.
    signal(warden, Signal::STOP);
    signal(first.pid(), Signal::KILL);
    signal(warden, Signal::KILL);
    let second = sandbox.tenure(&["run", "--no-wait", "job", "--", "echo", "mine"]);
    assert_eq!((second.code, second.stdout.as_str()), (0, "mine\n"), "{second:?}");
}

/// A new process has seen the records for no time at all, and is told their ages all the same.
#[test]
fn a_term_that_ended_long_ago_is_not_told_as_new_in_the_morning() {
    let server = durable();
    let sandbox = Sandbox::at("nats-morning", &server.url());
    assert_eq!(
        sandbox.tenure(&["run", "job", "--", "sh", "-c", "exit 4"]).code,
        4
    );
    std::thread::sleep(Duration::from_secs(3));
    let history = json(&sandbox.tenure(&["history", "job", "--output", "json"]).stdout);
    let term = &history["terms"][0];
    let [began, led] = ["began_ago_ms", "led_for_ms"].map(|field| term[field].as_u64().unwrap());
    assert!(began >= led + 1_500, "{term}");
    let lease = sandbox.lease("job");
    assert_eq!(lease["state"], "vacant");
    for age in ["began_ago_ms", "renewed_ago_ms"] {
        assert!(lease[age].as_u64().unwrap() >= 1_500, "{age}: {lease}");
    }
}

/// To a new process its lease is held, for as long as nobody else campaigns.
#[test]
fn a_holder_that_was_killed_is_not_told_to_lead_once_its_ttl_is_over() {
    let server = durable();
    let sandbox = Sandbox::at("nats-killed", &server.url());
    let first = sandbox.run(&["--ttl", "4s"], "job", "echo $$ > pid; exec sleep 300");
    let warden = parent_of(sandbox.pid("pid"));
    let latest = || json(&sandbox.tenure(&["history", "job", "--output", "json"]).stdout)["terms"][0].clone();
    eventually(SOON, "it is noted to lead", || latest()["leads"] == true);
    signal(warden, Signal::STOP);
    signal(first.pid(), Signal::KILL);
    signal(warden, Signal::KILL);
    // Only the servers' clocks tell, by which nothing is decided: neither is that it does not lead.
    eventually(SOON, "it is not told to lead", || latest()["leads"].is_null());
    let table = sandbox.tenure(&["history", "job"]).stdout;
    assert!(table.contains("not renewed: killed, or cut off?"), "{table}");
    let lease = sandbox.lease("job");
    assert!(lease["renewed_ago_ms"].as_u64().unwrap() > 4_000, "{lease}");
}

/// Its place in the queue is held by a lease of its own.
#[test]
fn one_attempt_in_order_is_not_kept_out_by_a_dead_waiter_for_ever() {
    let server = durable();
    let sandbox = Sandbox::at("nats-dead-waiter", &server.url());
    let first = sandbox.run(&["--ttl", "60s"], "job", "while [ ! -e go ]; do sleep 0.05; done");
    sandbox.until_held("job");
    let waiter = sandbox.start(&["lock", "--fair", "--ttl", "4s", "job", "--", "true"]);
    let place = [
        "status",
        "--prefix",
        "job/candidates/",
        "--all",
        "--output",
        "json",
    ];
    eventually(SOON, "it has a place", || {
        json(&sandbox.tenure(&place).stdout)["leases"][0]["state"] == "held"
    });
    signal(waiter.pid(), Signal::KILL);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(exit_code(&first), 0);
    let second = sandbox.tenure(&["lock", "-n", "--fair", "job", "--", "echo", "mine"]);
    assert_eq!((second.code, second.stdout.as_str()), (0, "mine\n"), "{second:?}");
}

/// Nobody takes a dead waiter's place, which would end its record: each new process sees it for the first
/// time.
#[test]
fn a_waiter_that_died_long_ago_keeps_no_command_waiting_and_is_not_called() {
    let server = durable();
    let sandbox = Sandbox::at("nats-long-dead-waiter", &server.url());
    let first = sandbox.run(&["--ttl", "60s"], "job", "while [ ! -e go ]; do sleep 0.05; done");
    sandbox.until_held("job");
    let ttl = ["--ttl", "8s"];
    let waiter = sandbox.start(
        &[
            &["lock", "--fair", "--candidate", "dead"][..],
            &ttl,
            &["job", "--", "true"],
        ]
        .concat(),
    );
    let place = || sandbox.lease("job/candidates/1/dead");
    eventually(SOON, "it has a place", || place()["state"] == "held");
    signal(waiter.pid(), Signal::KILL);
    eventually(SOON, "its place was not renewed for a ttl and a second", || {
        place()["renewed_ago_ms"].as_u64() > Some(9_500)
    });
    let refused = sandbox.tenure(&["step-down", "job", "--to", "dead"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("no candidate \"dead\" waits"),
        "{refused:?}"
    );
    assert_eq!(sandbox.lease("job")["state"], "held", "nobody was asked");
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(exit_code(&first), 0);
    for come in ["one", "another"] {
        let ended = sandbox.tenure(&["lock", "--fair", "-w", "3s", "job", "--", "echo", come]);
        assert_eq!((ended.code, ended.stdout.trim_end()), (0, come), "{ended:?}");
    }
}

/// It was held when it was asked for; a job that has just ended is not run again.
#[test]
fn one_attempt_gives_up_when_the_holder_has_shown_that_it_lives() {
    let server = durable();
    let sandbox = Sandbox::at("nats-lives", &server.url());
    let timing = ["--ttl", "60s"];
    let first = sandbox.run(&timing, "job", "while [ ! -e go ]; do sleep 0.05; done");
    sandbox.until_held("job");
    let second = sandbox.start(&["-v", "lock", "-n", "job", "--", "touch", "ran"]);
    second
        .wait_for_line("looking whether the holder lives", SOON)
        .unwrap();
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!((exit_code(&first), exit_code(&second)), (0, 1));
    assert!(!sandbox.dir.join("ran").exists());
}

/// The store takes requests and never answers.
#[test]
fn behind_a_silent_network_the_command_dies_and_another_takes_over_after_it() {
    let server = durable();
    let proxy = FaultProxy::nats(server.address()).unwrap();
    let sandbox = Sandbox::at("nats-silent", &format!("nats://{}", proxy.address()));
    let direct = Sandbox::at("nats-silent-direct", &server.url());
    let script = format!(
        "echo $$ > {}; trap '' TERM; while :; do sleep 0.05; done",
        sandbox.path("pid")
    );
    let first = sandbox.run(&journeys::KILLED_EARLY, "job", &script);
    let command = sandbox.pid("pid");
    let second = direct.run(
        &["--ttl", "15s"],
        "job",
        &format!("kill -0 {command} 2>/dev/null && echo both; echo mine"),
    );
    second.wait_for_line("waiting", SOON).unwrap();
    proxy.set(Fault::BlackHole);
    let silent_since = Instant::now();
    assert_eq!(exit_code(&first), 79);
    assert!(!is_alive(command), "the command outlived the lease");
    assert!(
        silent_since.elapsed() < Duration::from_secs(30),
        "{:?}",
        silent_since.elapsed()
    );
    second.wait_for_line("mine", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
    assert!(
        second.lines().iter().all(|line| line.text != "both"),
        "both ran at once"
    );
}

#[test]
fn a_job_is_led_in_a_cluster_although_a_server_dies() {
    let mut cluster = block_on(NatsCluster::start(NatsOptions::default())).unwrap();
    let sandbox = Sandbox::at("nats-cluster", &format!("{}/app", cluster.url()));
    // The bucket is made, and its copies elect their leader.
    assert_eq!(sandbox.tenure(&["run", "first", "--", "true"]).code, 0);
    let first = sandbox.run(&["--ttl", "30s"], "job", "sleep 300");
    sandbox.until_held("job");
    let leader = block_on(cluster.leader_of("KV_app")).unwrap();
    cluster.servers()[leader].kill();
    block_on(cluster.leader_of("KV_app")).unwrap();
    // Past the end that the lease had when the server died.
    std::thread::sleep(Duration::from_secs(31));
    assert_eq!(sandbox.lease("job")["state"], "held");
    assert_eq!(first.status(), None, "the command runs on");
    assert_eq!(sandbox.tenure(&["step-down", "job", "--wait", "60s"]).code, 0);
    assert_eq!(exit_code(&first), 79);
}

#[test]
fn claims_refusals_and_marks_in_nats() {
    let server = durable();
    let sandbox = Sandbox::at("nats-fence", &format!("{}/app", server.url()));
    let job = "tenure fence claim ledger && tenure fence check ledger && echo claimed";
    let job = job.replace("tenure", env!("CARGO_BIN_EXE_tenure"));
    let ended = sandbox.tenure(&["run", "job", "--", "sh", "-c", &job]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("claimed"), "{ended:?}");
    let shown = sandbox.tenure(&["fence", "show"]);
    assert!(shown.code == 0 && shown.stdout.contains("ledger"), "{shown:?}");
}

#[test]
fn tls_reaches_a_server_whose_certificate_is_trusted_and_no_other() {
    let certificate = SelfSigned::new("nats-tls");
    let encrypts = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\" }}",
        certificate.file, certificate.key
    );
    let server = block_on(NatsServer::start(NatsOptions::durable().with(&encrypts))).unwrap();
    let port = server.address().rsplit_once(':').unwrap().1.to_owned();
    let url = format!("nats+tls://localhost:{port}");
    journeys::tls_reaches_a_server_whose_certificate_is_trusted_and_no_other(&url, &certificate);
}

#[test]
fn a_store_that_is_not_there_is_said_to_be_unavailable() {
    for url in [
        "nats://127.0.0.1:1",
        "nats://no-such-host.invalid",
        "nats://127.0.0.1:1,127.0.0.1:2/app",
    ] {
        let sandbox = Sandbox::at("nats-nowhere", url);
        let ended = sandbox.tenure(&["run", "--no-wait", "job", "--", "touch", "ran"]);
        assert_eq!(ended.code, 69, "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains("lease \"job\""), "{ended:?}");
        assert!(!sandbox.dir.join("ran").exists());
    }
}

#[test]
fn wrong_credentials_end_with_77_and_no_secret_is_printed_or_passed_on() {
    let secret = "hunter2-secret";
    let settings = format!("authorization {{ token: \"{secret}\" }}\n");
    let server = block_on(NatsServer::start(NatsOptions::default().with(&settings))).unwrap();
    for url in [
        format!("nats://{}", server.address()),
        format!("nats://wrong-{secret}@{}", server.address()),
        format!("nats://user:{secret}@{}", server.address()),
    ] {
        let ended = ended({
            let mut command = bare(&["run", "job", "--", "true"]);
            command.env("TENURE_STORE", url);
            command
        });
        assert_eq!(ended.code, 77, "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(!ended.stderr.contains(secret), "{ended:?}");
    }
    let sandbox = Sandbox::at("nats-token", &format!("nats://{secret}@{}", server.address()));
    let ended = sandbox.tenure(&["run", "job", "--", "sh", "-c", "echo $TENURE_STORE"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        !ended.stdout.contains(secret) && ended.stdout.contains(&server.address()),
        "{ended:?}"
    );
}
