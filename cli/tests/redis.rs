//! The same command over a real Redis and Valkey, sentinels, and a network that swallows everything.

use crate::common::journeys;
use crate::common::{SOON, Sandbox, exit_code, json, until_watched};
use crate::deadline::numbered;
use crate::endpoint::metric;
use std::time::Duration;
use tenure_testkit::{
    Fault, FaultProxy, Process, RedisBuild, RedisOptions, RedisSentinels, RedisServer, SelfSigned,
    ServerClock, block_on, eventually, free_port, is_alive,
};

pub fn durable() -> RedisServer {
    block_on(RedisServer::start(RedisOptions::durable())).unwrap()
}

#[test]
fn contenders_take_turns_and_tokens_rise() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let server = block_on(RedisServer::start(RedisOptions::durable().of(build))).unwrap();
        journeys::contenders_take_turns_and_tokens_rise(&Sandbox::at("redis-turns", &server.url()));
    }
}

#[test]
fn step_down_hands_over_and_no_wait_ends_at_once() {
    let server = durable();
    let sandbox = Sandbox::at("redis-hand-over", &server.url());
    journeys::step_down_hands_over_and_no_wait_ends_at_once(&sandbox);
}

#[test]
fn gc_keeps_what_was_used_lately() {
    let server = durable();
    let sandbox = Sandbox::at("redis-gc", &server.url());
    journeys::gc_keeps_what_was_used_lately(&sandbox);
}

/// What a member has that is away goes when it is back; and nothing goes without a majority.
#[test]
fn gc_cleans_up_a_quorum_although_a_member_is_away() {
    let mut servers: Vec<RedisServer> = (0..3).map(|_| durable()).collect();
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let sandbox = Sandbox::at("redis-quorum-gc", &format!("redis+quorum://{}", hosts.join(",")));
    journeys::gc_keeps_what_was_used_lately(&sandbox);
    let before = sandbox.lease("job")["token"].as_u64();
    for server in &servers {
        eventually(SOON, "the release in every member", || {
            let told = server.ask("HEXISTS {tenure}:lease:job releasedAt").unwrap();
            told == ":1"
        });
        server.ask("HSET {tenure}:lease:job expiresAt 1").unwrap();
    }
    servers[2].kill();
    let looked = sandbox.tenure(&["gc", "--dry-run"]);
    assert_eq!((looked.code, looked.stdout.as_str()), (0, "job\n"), "{looked:?}");
    let removed = sandbox.tenure(&["gc"]);
    assert_eq!(removed.stdout, "1 unused record removed\n", "{removed:?}");
    block_on(servers[2].restart()).unwrap();
    assert_eq!(
        sandbox.lease("job")["token"].as_u64(),
        before,
        "it is still listed"
    );
    let removed = sandbox.tenure(&["gc"]);
    assert_eq!(removed.stdout, "1 unused record removed\n", "{removed:?}");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    assert!(sandbox.lease("job")["token"].as_u64() > before);
    for server in &mut servers[..2] {
        server.kill();
    }
    let cleaned = sandbox.tenure(&["gc"]);
    assert_eq!(cleaned.code, 69, "{cleaned:?}");
}

#[test]
fn a_server_that_is_away_at_the_start_is_waited_for() {
    let mut server = durable();
    server.kill();
    let sandbox = Sandbox::at("redis-away", &server.url());
    let process = sandbox.run(&[], "job", "exit 4");
    process.wait_for_line("trying on", SOON).unwrap();
    block_on(server.restart()).unwrap();
    assert_eq!(exit_code(&process), 4);
}

#[test]
fn doctor_says_what_a_server_is_worth() {
    let server = durable();
    let sandbox = Sandbox::at("redis-doctor", &server.url());
    let doctor = sandbox.tenure(&["doctor", "--output", "json"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    let told = json(&doctor.stdout);
    assert_eq!(told["store"]["kind"], "redis");
    assert!(told["fence_only"].is_null(), "{doctor:?}");
    assert!(doctor.stdout.contains("appendfsync always"), "{doctor:?}");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    assert_eq!(sandbox.lease("job")["state"], "vacant");

    let forgetful = block_on(RedisServer::start(RedisOptions::default())).unwrap();
    let sandbox = Sandbox::at("redis-forgets", &forgetful.url());
    let doctor = sandbox.tenure(&["doctor"]);
    assert_eq!(doctor.code, 82, "{doctor:?}");
    let verdict = doctor.stdout.lines().last().unwrap();
    assert!(
        verdict.starts_with("Leases alone are not safe here"),
        "{doctor:?}"
    );
    let doctor = sandbox.tenure(&["doctor", "--output", "json"]);
    assert_eq!(doctor.code, 82, "{doctor:?}");
    assert!(json(&doctor.stdout)["fence_only"].is_string(), "{doctor:?}");

    let evicting = RedisOptions::with("--maxmemory 100mb --maxmemory-policy allkeys-lru");
    let server = block_on(RedisServer::start(evicting)).unwrap();
    let doctor = Sandbox::at("redis-evicts", &server.url()).tenure(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(
        doctor.stdout.contains("maxmemory-policy noeviction"),
        "{doctor:?}"
    );
}

/// With the rights that the README of the store gives to who only looks.
#[test]
fn doctor_ends_with_1_for_who_may_only_look() {
    let server = durable();
    let set = "ACL SETUSER looker on >hunter2 ~* &* +eval +evalsha +time +hmget +hget +exists +zrem +zrangebylex +subscribe \
               +psubscribe +unsubscribe +punsubscribe +ping +hello +select +role +info +config|get +acl|whoami";
    assert_eq!(server.ask(set).unwrap(), "+OK");
    let url = server.url().replace("redis://", "redis://looker:hunter2@");
    let sandbox = Sandbox::at("redis-looker", &url);
    let doctor = sandbox.tenure(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.stdout.contains("no lease can be taken"), "{doctor:?}");
    assert!(doctor.stdout.contains("--clock-for 0s"), "{doctor:?}");
    let looked = sandbox.tenure(&["doctor", "--clock-for", "0s"]);
    assert_eq!(looked.code, 0, "{looked:?}");
}

/// Beside the leases nobody need have the right to look at marks; where somebody has said that there are
/// some, it is missed.
#[test]
fn status_without_the_right_to_see_marks_shows_the_leases() {
    let server = durable();
    let admin = Sandbox::at("redis-status", &server.url());
    assert_eq!(admin.tenure(&["run", "job", "--", "true"]).code, 0);
    let set = "ACL SETUSER looker on >hunter2 ~{tenure}:lease* &* +@all";
    assert_eq!(server.ask(set).unwrap(), "+OK");
    let url = server.url().replace("redis://", "redis://looker:hunter2@");
    let sandbox = Sandbox::at("redis-no-marks", &url);
    let status = sandbox.tenure(&["status"]);
    assert_eq!((status.code, status.stderr.as_str()), (0, ""), "{status:?}");
    assert!(status.stdout.contains("job"), "{status:?}");
    let status = sandbox.tenure(&["status", "--fence", &url]);
    assert_eq!(status.code, 77, "{status:?}");
    assert!(status.stdout.contains("job"), "{status:?}");
    assert_eq!(status.stderr.lines().count(), 1, "{status:?}");
}

#[test]
fn behind_a_silent_network_the_command_dies_before_the_deadline() {
    let server = durable();
    let proxy = FaultProxy::redis(server.address()).unwrap();
    let sandbox = Sandbox::at("redis-silent", &format!("redis://{}", proxy.address()));
    let direct = Sandbox::at("redis-silent-direct", &server.url());
    journeys::behind_a_silent_network_the_command_dies_before_the_deadline(&sandbox, &direct, &proxy);
}

/// The lease outlives the fail-over, if it had reached the replica: the leader goes on, or ends in good
/// order.
#[test]
fn a_job_is_led_again_after_the_sentinels_made_a_replica_primary() {
    let mut set = block_on(RedisSentinels::start()).unwrap();
    let sandbox = Sandbox::at("redis-sentinels", &set.url());
    let first = sandbox.run(&["--ttl", "20s"], "job", "sleep 300");
    sandbox.until_held("job");
    let token = sandbox.lease("job")["token"].as_u64().unwrap();
    set.servers()[0].kill();
    eventually(Duration::from_secs(60), "a status from the new primary", || {
        sandbox.tenure(&["status", "job"]).code == 0
    });
    let ended = sandbox.tenure(&["step-down", "job", "--wait", "60s"]);
    assert!(matches!(ended.code, 0 | 1), "{ended:?}");
    assert!(matches!(exit_code(&first), 79), "the first leader ended its work");
    let next = sandbox.tenure(&["run", "job", "--", "sh", "-c", "echo $TENURE_TOKEN"]);
    assert!(next.stdout.trim().parse::<u64>().unwrap() > token, "{next:?}");
}

#[test]
fn a_job_is_led_by_a_quorum_although_a_member_dies() {
    let mut servers: Vec<RedisServer> = (0..3).map(|_| durable()).collect();
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let sandbox = Sandbox::at("redis-quorum", &format!("redis+quorum://{}", hosts.join(",")));
    let timing = ["--ttl", "12s", "--renew", "2s"];
    let first = sandbox.run(&timing, "job", "sleep 300");
    sandbox.until_held("job");
    servers[0].kill();
    let second = sandbox.run(&timing, "job", "echo mine");
    second.wait_for_line("waiting", SOON).unwrap();
    // Past the end that the lease had when the member died.
    std::thread::sleep(Duration::from_secs(14));
    assert_eq!(sandbox.lease("job")["state"], "held");
    // Nobody knows what the dead one has kept.
    assert_eq!(sandbox.tenure(&["doctor"]).code, 82);
    assert_eq!(sandbox.tenure(&["step-down", "job", "--wait", "30s"]).code, 0);
    assert_eq!(exit_code(&first), 79);
    second.wait_for_line("mine", SOON).unwrap();
    let fence = sandbox.tenure(&["fence", "show"]);
    assert!(
        fence.code != 0 && fence.stderr.contains("keeps no marks"),
        "{fence:?}"
    );
}

/// A quorum in which the member that is away makes a majority for `job` with either of the two others.
fn with_a_lease_in_doubt(label: &str) -> (Vec<RedisServer>, Sandbox, Process) {
    let mut servers: Vec<RedisServer> = (0..3).map(|_| durable()).collect();
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let sandbox = Sandbox::at(label, &format!("redis+quorum://{}", hosts.join(",")));
    assert_eq!(sandbox.tenure(&["run", "other", "--", "true"]).code, 0);
    let leader = sandbox.run(&["--ttl", "300s"], "job", "sleep 300");
    sandbox.until_held("job");
    for (server, holder) in servers.iter().zip(["1", "2"]) {
        let incarnation = holder.repeat(32);
        let set = format!("HSET {{tenure}}:lease:job incarnation {incarnation} generation {holder}00");
        server.ask(&set).unwrap();
    }
    servers[2].kill();
    (servers, sandbox, leader)
}

/// One line tells of it, and the code is that of its error.
#[test]
fn lease_that_cannot_be_told_keeps_no_other_that_was_asked_for_from_being_shown() {
    let (_servers, sandbox, _leader) = with_a_lease_in_doubt("redis-quorum-told");
    for names in [["job", "other"], ["other", "job"]] {
        let shown = sandbox.tenure(&["status", names[0], names[1], "--output", "json"]);
        assert_eq!(shown.code, 69, "{shown:?}");
        let told = json(&shown.stdout);
        let leases: Vec<_> = told["leases"].as_array().unwrap().iter().collect();
        let states: Vec<_> = names
            .iter()
            .map(|name| match *name {
                "job" => "unknown",
                _ => "vacant",
            })
            .collect();
        assert_eq!(
            leases.iter().map(|lease| &lease["name"]).collect::<Vec<_>>(),
            names
        );
        assert_eq!(
            leases.iter().map(|lease| &lease["state"]).collect::<Vec<_>>(),
            states
        );
    }
    let shown = sandbox.tenure(&["status", "job", "other"]);
    let lines: Vec<&str> = shown
        .stdout
        .lines()
        .filter(|line| line.contains("do not agree"))
        .collect();
    assert!(lines.len() == 1 && lines[0].starts_with("job "), "{shown:?}");
}

/// Nothing is damaged, and it is known when the third is back.
#[test]
fn lease_that_either_of_two_may_hold_is_shown_as_unknown_and_not_as_damaged() {
    let (servers, sandbox, _leader) = with_a_lease_in_doubt("redis-quorum-doubt");
    for names in [&["status"][..], &["status", "job"]] {
        let shown = sandbox.tenure(names);
        assert!(
            shown.code == 69 && !shown.stdout.contains("unreadable"),
            "{shown:?}"
        );
    }
    let shown = sandbox.tenure(&["status"]).stdout;
    assert!(
        shown.contains("unknown") && shown.contains("do not agree"),
        "{shown}"
    );
    // Beside a record that is damaged, that one counts.
    for server in &servers[..2] {
        server.ask("HSET {tenure}:lease:broken generation none").unwrap();
        server.ask("ZADD {tenure}:leases 0 broken").unwrap();
    }
    let shown = sandbox.tenure(&["status"]);
    assert!(
        shown.code == 65 && shown.stdout.contains("unreadable"),
        "{shown:?}"
    );
}

/// A member has missed the term, and the one that is away has it: by the two that the warden hears, nobody
/// has a majority.
#[test]
fn killed_tenure_has_its_lease_given_back_in_a_quorum_that_knows_it_in_one_member() {
    let mut servers: Vec<RedisServer> = (0..3).map(|_| durable()).collect();
    let proxy = FaultProxy::redis(servers[2].address()).unwrap();
    let mut hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    hosts[2] = proxy.address().to_string();
    let sandbox = Sandbox::at(
        "redis-quorum-killed",
        &format!("redis+quorum://{}", hosts.join(",")),
    );
    // A new one takes no lease before all its members have answered.
    let made = sandbox.tenure(&["store", "init"]);
    assert_eq!(made.code, 0, "{made:?}");
    servers[1].kill();
    let process = sandbox.run(&["--ttl", "1h"], "job", &numbered(&sandbox, "sleep 300"));
    let pid = sandbox.pid("pid");
    until_watched(process.pid());
    block_on(servers[1].restart()).unwrap();
    proxy.set(Fault::Refuse);
    proxy.cut_connections();
    process.kill_leader();
    eventually(SOON, "the work is killed", || !is_alive(pid));
    eventually(SOON, "the lease is given back", || {
        servers[0].ask("HEXISTS {tenure}:lease:job releasedAt").unwrap() == ":1"
    });
}

/// The member that keeps the data has missed the term, or knows of a later one that was nobody's.
#[test]
fn fence_in_a_member_of_a_quorum_admits_the_term_whatever_that_member_has_of_the_lease() {
    let servers: Vec<RedisServer> = (0..3).map(|_| durable()).collect();
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let sandbox = Sandbox::at(
        "redis-quorum-fence",
        &format!("redis+quorum://{}", hosts.join(",")),
    );
    let _leader = sandbox.run(&["--ttl", "300s"], "job", "sleep 300");
    sandbox.until_held("job");
    let token = sandbox.lease("job")["token"].as_u64().unwrap();
    for (resource, known) in [("missed", token - 1), ("ahead", token + 1)] {
        let set = format!("HSET {{tenure}}:lease:job generation {known}");
        servers[0].ask(&set).unwrap();
        let token = token.to_string();
        let claim = ["fence", "claim", resource, "--lease", "job", "--token", &token];
        let claimed = sandbox.tenure(&[&claim[..], &["--fence", &servers[0].url()]].concat());
        assert_eq!(claimed.code, 0, "{claimed:?}");
        let beyond = (known + 1_000).to_string();
        let beyond = ["fence", "claim", "other", "--lease", "job", "--token", &beyond];
        let refused = sandbox.tenure(&[&beyond[..], &["--fence", &servers[0].url()]].concat());
        assert!(refused.code != 0, "{refused:?}");
    }
}

#[test]
fn tls_reaches_a_server_whose_certificate_is_trusted_and_no_other() {
    let certificate = SelfSigned::new("redis-tls");
    let (file, key) = (&certificate.file, &certificate.key);
    let port = free_port();
    let options = RedisOptions::with(&format!(
        "--tls-port {port} --tls-cert-file {file} --tls-key-file {key} --tls-ca-cert-file {file} --tls-auth-clients no"
    ));
    let _server = block_on(RedisServer::start(options)).unwrap();
    let url = format!("rediss://localhost:{port}");
    journeys::tls_reaches_a_server_whose_certificate_is_trusted_and_no_other(&url, &certificate);
}

#[test]
fn a_store_that_is_not_there_is_said_to_be_unavailable() {
    let nowhere = "redis+sentinel://127.0.0.1:1,127.0.0.1:2?primary=p";
    for url in ["redis://127.0.0.1:1", "redis://no-such-host.invalid", nowhere] {
        journeys::a_store_that_is_not_there_is_said_to_be_unavailable(url);
    }
}

#[test]
fn wrong_credentials_end_with_77_and_no_password_is_printed_or_passed_on() {
    let secret = "hunter2-secret";
    let options = RedisOptions {
        password: Some(secret.to_owned()),
        ..RedisOptions::default()
    };
    let server = block_on(RedisServer::start(options)).unwrap();
    for url in [
        format!("redis://{}", server.address()),
        format!("redis://:wrong-{secret}@{}", server.address()),
    ] {
        journeys::wrong_credentials_end_with_77_and_are_not_printed(&url, secret);
    }
    let sandbox = Sandbox::at("redis-password", &server.url());
    let ended = sandbox.tenure(&["run", "job", "--", "sh", "-c", "echo $TENURE_STORE"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        !ended.stdout.contains(secret) && ended.stdout.contains(&server.address()),
        "{ended:?}"
    );
}

#[test]
fn doctor_sees_the_servers_clock_step() {
    let clock = ServerClock::new().unwrap();
    let server = block_on(RedisServer::start(RedisOptions::durable().by(&clock))).unwrap();
    let sandbox = Sandbox::at("redis-clock", &server.url());
    let even = sandbox.tenure(&["doctor", "--clock-for", "1s"]);
    assert!(even.stdout.contains("no step within 1s"), "{even:?}");
    // To and fro by a little, and on and on by more than the doctor's own lease lasts.
    for (turns, by, told) in [(true, 5.0, " stepped "), (false, 3600.0, "was set far ahead")] {
        clock.set_ahead(0.0).unwrap();
        let doctor = sandbox.start(&["doctor", "--clock-for", "3s"]);
        let mut ahead = 0.0;
        eventually(SOON, "the doctor's word", || {
            ahead = if turns { by - ahead } else { ahead + by };
            clock.set_ahead(ahead).unwrap();
            std::thread::sleep(Duration::from_millis(300));
            doctor.status().is_some()
        });
        assert_eq!(exit_code(&doctor), 1);
        let lines: Vec<String> = doctor.lines().into_iter().map(|line| line.text).collect();
        let bad = |line: &String| line.starts_with("bad") && line.contains(told);
        assert!(lines.iter().any(bad), "{lines:?}");
    }
}

/// Nothing else ends then, and a password that was changed for good is refused until a person acts.
#[test]
fn a_login_that_is_refused_later_is_told_also_to_who_hears_errors_alone_and_is_tried_on() {
    let server = durable();
    let ask = |command: &str| {
        let answer = server.ask(command).unwrap();
        assert!(!answer.starts_with('-'), "{command}: {answer}");
    };
    ask("ACL SETUSER app on >right allkeys allchannels +@all");
    let of_app = format!("redis://app:right@{}", server.address());
    let (holder, sandbox) = (
        Sandbox::at("redis-refused-holder", &server.url()),
        Sandbox::at("redis-refused", &of_app),
    );
    let held = holder.run(&["--ttl", "5s"], "job", "sleep 300");
    holder.until_held("job");
    let address = format!("127.0.0.1:{}", free_port());
    let options = ["run", "--quiet", "--ttl", "5s", "--metrics", &address];
    let waiting = sandbox.start(&[&options[..], &["job", "--", "true"]].concat());
    eventually(SOON, "a standby", || {
        metric(&address, "lease_terms{lease=\"job\"}") == Some(1.0)
    });
    ask("ACL SETUSER app resetpass >another");
    ask("CLIENT KILL USER app");
    held.kill_all_at_once();
    let told = waiting.wait_for_line("trying on", SOON).unwrap();
    assert!(told.text.contains("check user and password"), "{}", told.text);
    ask("ACL SETUSER app resetpass >right");
    assert_eq!(exit_code(&waiting), 0);
}
