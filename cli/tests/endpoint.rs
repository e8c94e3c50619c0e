//! What a process tells of itself over HTTP, and over a socket.

use crate::common::{SOON, Sandbox, ended, exit_code, json, signal};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tenure::metrics::METRICS;
use tenure_testkit::{eventually, free_port};

/// Status and body of a page.
fn page(mut stream: impl Read + Write, path: &str) -> (u16, String) {
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

pub fn get(address: &str, path: &str) -> (u16, String) {
    let connect = || TcpStream::connect(address).ok();
    let stream = eventually(SOON, "the pages", connect);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    page(stream, path)
}

/// The value of a metric's line that begins so.
pub fn metric(address: &str, line: &str) -> Option<f64> {
    let (status, body) = get(address, "/metrics");
    assert_eq!(status, 200);
    let found = body.lines().find_map(|other| other.strip_prefix(line));
    found.map(|value| value.trim().parse().unwrap())
}

/// Who leads, as soon as the store says so in time: a loaded machine may need more than one try.
fn leader(address: &str) -> Value {
    eventually(SOON, "an answer in time", || {
        let (status, body) = get(address, "/leader");
        (status == 200).then(|| json(&body))
    })
}

#[test]
fn a_leader_and_a_standby_tell_who_leads_and_how_it_goes() {
    let sandbox = Sandbox::new("endpoint");
    let [one, two] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let first = sandbox.run(
        &[
            "--metrics",
            &one,
            "--candidate",
            "one",
            "--ttl",
            "30s",
            "--renew",
            "500ms",
        ],
        "job",
        "sleep 300",
    );
    sandbox.until_held("job");
    let second = sandbox.run(
        &[
            "--metrics",
            &two,
            "--candidate",
            "two",
            "--ttl",
            "30s",
            "--renew",
            "500ms",
        ],
        "job",
        "sleep 300",
    );
    second.wait_for_line("waiting", SOON).unwrap();
    for (address, leads) in [(&one, true), (&two, false)] {
        assert_eq!(get(address, "/livez").0, 200);
        eventually(SOON, "it is ready", || get(address, "/readyz").0 == 200);
        // A store shows a term, to others and to a standby, before its holder has heard of it.
        eventually(SOON, "it says who leads", || {
            let told = leader(address);
            if told["leads"] == leads && told["leader"]["holder"] == "one" {
                Ok(())
            } else {
                Err(told)
            }
        });
        eventually(SOON, "its status", || {
            metric(address, "leader_status{lease=\"job\"}") == Some(f64::from(u8::from(leads)))
        });
    }
    eventually(SOON, "a renewal", || {
        metric(&one, "lease_renewals{lease=\"job\"}").is_some_and(|renewals| renewals >= 1.0)
    });
    // One that failed on a busy disk is counted, too.
    let attempts = metric(&one, "lease_acquisition_attempts{lease=\"job\"}");
    assert!(attempts.is_some_and(|attempts| attempts >= 1.0), "{attempts:?}");
    let until = metric(&one, "lease_valid_until_timestamp_seconds{lease=\"job\"}").unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let remaining = until - now.as_secs_f64();
    assert!((0.0..=30.0).contains(&remaining), "{remaining}");
    assert_eq!(get(&one, "/").0, 404);

    first.terminate();
    eventually(SOON, "the standby leads", || leader(&two)["leads"] == true);
    eventually(SOON, "its term is counted", || {
        metric(&two, "lease_terms_begun{lease=\"job\",after=\"vacant\"}") == Some(1.0)
    });
}

/// Every metric is described, and every one that is exported is in the list.
#[test]
fn what_is_exported_is_what_is_listed() {
    let sandbox = Sandbox::new("listed");
    let address = format!("127.0.0.1:{}", free_port());
    let _leader = sandbox.run(
        &["--metrics", &address, "--ttl", "30s", "--renew", "300ms"],
        "job",
        "sleep 300",
    );
    sandbox.until_held("job");
    eventually(SOON, "a renewal", || {
        metric(&address, "lease_renewals{lease=\"job\"}").is_some()
    });
    let (_, body) = get(&address, "/metrics");
    let mut exported = 0;
    for line in body.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = line.split(' ').next().unwrap();
        assert!(
            METRICS.iter().any(|metric| metric.name == name),
            "{name} is not in the list"
        );
        assert!(
            body.contains(&format!("# HELP {name} ")),
            "{name} is not described"
        );
        exported += 1;
    }
    assert!(exported >= 8, "{body}");
}

/// Wherever they were refused, of the writes that the fences of its lease have refused; also where another
/// mark is damaged.
#[test]
fn a_leader_tells_how_many_stale_writes_were_refused() {
    let sandbox = Sandbox::new("refused");
    let address = format!("127.0.0.1:{}", free_port());
    let [old, new] = ["old", "new"].map(|number| sandbox.path(number));
    for path in [&old, &new] {
        let script = format!("tenure fence claim ledger > /dev/null; echo $TENURE_TOKEN > {path}");
        let program = env!("CARGO_BIN_EXE_tenure");
        let script = script.replace("tenure fence", &format!("{program} fence"));
        assert_eq!(exit_code(&sandbox.run(&[], "job", &script)), 0);
    }
    let stale = sandbox.line("old");
    let check = ["fence", "check", "ledger", "--lease", "job", "--token", &stale];
    assert_ne!(sandbox.tenure(&check).code, 0);
    let current = sandbox.line("new");
    let damaged = ["fence", "claim", "damaged", "--lease", "job", "--token", &current];
    assert_eq!(sandbox.tenure(&damaged).code, 0);
    // What another lease's fence has refused is told by whoever leads there.
    for (deed, token, code) in [("claim", "9", 0), ("check", "5", 80)] {
        let other = ["fence", deed, "other", "--lease", "other", "--token", token];
        assert_eq!(sandbox.tenure(&other).code, code);
    }
    Connection::open(sandbox.path("leases.db"))
        .unwrap()
        .execute_batch("UPDATE tenure_fence SET token = -5 WHERE resource = 'damaged'")
        .unwrap();
    let _leader = sandbox.run(&["--metrics", &address], "job", "sleep 300");
    eventually(SOON, "the refusal is told", || {
        metric(&address, "lease_fence_refusals_noted{lease=\"job\"}") == Some(1.0)
    });
}

#[test]
fn a_socket_serves_the_same_pages_and_is_gone_afterwards() {
    let sandbox = Sandbox::new("socket");
    let path = sandbox.path("pages.sock");
    let address = format!("unix:{path}");
    for round in ["first", "second"] {
        let script = format!("echo $$ > {}; sleep 300", sandbox.path(round));
        let process = sandbox.run(&["--metrics", &address], "job", &script);
        // Before its command runs it has no warden that would give the lease back.
        sandbox.pid(round);
        eventually(SOON, "it says that it leads", || {
            let told = page(UnixStream::connect(&path).unwrap(), "/leader");
            json(&told.1)["leads"] == true
        });
        // What a killed process leaves behind is in nobody's way.
        signal(process.pid(), Signal::KILL);
        eventually(SOON, "the lease is given back", || {
            sandbox.lease("job")["state"] == "vacant"
        });
    }
}

/// The address is that of the outer one.
#[test]
fn a_tenure_that_a_command_runs_does_not_inherit_the_address() {
    let sandbox = Sandbox::new("nested");
    let inner = format!("{} run inner -- echo inner", env!("CARGO_BIN_EXE_tenure"));
    let mut command = sandbox.command(&["run", "outer", "--", "sh", "-c", &inner]);
    command.env("TENURE_METRICS", format!("127.0.0.1:{}", free_port()));
    let ended = ended(command);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "inner\n"), "{ended:?}");
}

#[test]
fn the_socket_is_gone_when_its_process_has_ended_by_itself() {
    let sandbox = Sandbox::new("socket-removed");
    let path = sandbox.dir.join("pages.sock");
    let address = format!("unix:{}", path.display());
    for (script, code) in [("test -S pages.sock", 0), ("exit 3", 3)] {
        let ended = sandbox.tenure(&["run", "--metrics", &address, "job", "--", "sh", "-c", script]);
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(path.symlink_metadata().is_err(), "the socket was left behind");
    }
    let ended = sandbox.tenure(&["run", "--metrics", &address, "job", "--", "no such command"]);
    assert_eq!(ended.code, 127, "{ended:?}");
    assert!(path.symlink_metadata().is_err(), "the socket was left behind");
}

/// Somebody has put another file in its place.
#[test]
fn the_file_of_another_is_not_removed_with_the_socket() {
    let sandbox = Sandbox::new("socket-replaced");
    let address = format!("unix:{}", sandbox.path("pages.sock"));
    let script = "rm pages.sock && echo mine > pages.sock";
    let ended = sandbox.tenure(&["run", "--metrics", &address, "job", "--", "sh", "-c", script]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(sandbox.read("pages.sock"), "mine\n");
}

/// One of all that find a socket that nobody serves has it, and keeps it; the others are told.
#[test]
fn a_socket_that_was_left_behind_goes_to_one_of_those_who_come_at_once() {
    for _ in 0..2 {
        let sandbox = Sandbox::new("socket-once");
        let path = sandbox.path("pages.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let address = format!("unix:{path}");
        let names: Vec<String> = (0..8).map(|number| format!("job-{number}")).collect();
        let come = |name: &String| sandbox.run(&["--metrics", &address], name, "echo works; sleep 300");
        let all: Vec<_> = names.iter().map(come).collect();
        let serves = |process: &tenure_testkit::Process| process.status().is_none();
        eventually(SOON, "each works or is refused", || {
            all.iter().all(|process| {
                !serves(process) || process.lines().iter().any(|line| line.text.contains("works"))
            })
        });
        let (served, refused): (Vec<_>, Vec<_>) = all.iter().partition(|process| serves(process));
        assert_eq!(served.len(), 1, "they serve the same socket");
        for process in refused {
            assert_eq!(exit_code(process), 78);
        }
        let (status, body) = page(UnixStream::connect(&path).unwrap(), "/livez");
        assert_eq!((status, body.as_str()), (200, "ok\n"));
    }
}

/// Whoever may read the folder may lock it, for as long as he likes.
#[test]
fn a_socket_is_taken_though_somebody_keeps_its_folder_locked() {
    let sandbox = Sandbox::new("socket-locked");
    let path = sandbox.dir.join("pages.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let folder = std::fs::File::open(sandbox.dir.path()).unwrap();
    folder.lock().unwrap();
    let address = format!("unix:{}", path.display());
    let _leader = sandbox.run(&["--metrics", &address], "job", "sleep 300");
    let (status, body) = eventually(SOON, "the pages", || {
        UnixStream::connect(&path)
            .ok()
            .map(|stream| page(stream, "/livez"))
    });
    assert_eq!((status, body.as_str()), (200, "ok\n"));
    folder.unlock().unwrap();
}

#[test]
fn a_file_that_is_no_socket_is_refused_and_left_as_it_is() {
    let sandbox = Sandbox::new("no-socket");
    let (file, link) = (sandbox.dir.join("ledger"), sandbox.dir.join("link"));
    std::fs::write(&file, "of value").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [&file, &link] {
        let address = format!("unix:{}", path.display());
        let ended = sandbox.tenure(&["run", "--metrics", &address, "job", "--", "touch", "ran"]);
        assert_eq!(ended.code, 78, "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains("is no socket"), "{ended:?}");
        assert_eq!(sandbox.read("ledger"), "of value");
        assert!(link.is_symlink() && !sandbox.dir.join("ran").exists());
    }
}

#[test]
fn an_address_that_is_taken_or_none_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new("taken");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (address, why) in [
        (taken.as_str(), "another process uses it"),
        ("nowhere", "give HOST:PORT"),
    ] {
        let ended = sandbox.tenure(&["run", "--metrics", address, "job", "--", "touch", "ran"]);
        assert_eq!(ended.code, 78, "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
        assert!(!sandbox.dir.join("ran").exists());
    }
}

/// The store's file is away: nothing is answered, and nobody is shown as the leader, though this process is
/// sure to lead yet.
#[test]
fn while_the_store_does_not_answer_nobody_is_shown_to_lead() {
    let sandbox = Sandbox::new("unready");
    let address = format!("127.0.0.1:{}", free_port());
    let _leader = sandbox.run(&["--metrics", &address, "--ttl", "10m"], "job", "sleep 300");
    eventually(SOON, "it leads", || leader(&address)["leads"] == true);
    let _away = sandbox.move_store_away();
    let unready = || (get(&address, "/readyz").0 == 503).then(|| get(&address, "/leader"));
    let (status, body) = eventually(SOON, "the store is missed", unready);
    assert_eq!(status, 503, "{body}");
    for told in ["leader", "leads", "own_token"] {
        assert_eq!(json(&body)[told], Value::Null, "{body}");
    }
}

/// The address of a leader's pages, and what keeps it there; its store has just stopped to answer.
#[cfg(feature = "redis")]
fn leader_whose_store_hangs(test: &str) -> (String, impl Sized) {
    use tenure_testkit::{RedisOptions, RedisServer, block_on};

    let server = block_on(RedisServer::start(RedisOptions::durable())).unwrap();
    let sandbox = Sandbox::at(test, &server.url());
    let address = format!("127.0.0.1:{}", free_port());
    let leading = sandbox.run(&["--metrics", &address, "--ttl", "10m"], "job", "sleep 300");
    eventually(SOON, "it leads", || leader(&address)["leads"] == true);
    server.freeze();
    (address, (leading, sandbox, server))
}

/// As `printf 'GET /readyz HTTP/1.0\r\n\r\n' | nc -N`: the request has an end, and its answer takes a moment.
#[cfg(feature = "redis")]
#[test]
fn whoever_says_that_nothing_more_comes_is_answered() {
    let (address, _kept) = leader_whose_store_hangs("half-closed");
    eventually(SOON, "what was known is too old", || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 "), "{answer:?}");
        answer.contains(" 503 ")
    });
}

/// Nobody waits for the time-outs of those who came before.
#[cfg(feature = "redis")]
#[test]
fn while_the_store_hangs_all_are_answered_and_the_process_is_seen_to_live() {
    let (address, _kept) = leader_whose_store_hangs("hanging-pages");
    eventually(SOON, "what was known is too old", || {
        get(&address, "/leader").0 == 503
    });
    // Each is answered within 20 s; a look takes two, and there are 32 places.
    let asking = || {
        let address = address.clone();
        std::thread::spawn(move || get(&address, "/leader").0)
    };
    let asking: Vec<_> = (0..60).map(|_| asking()).collect();
    assert_eq!(get(&address, "/livez").0, 200);
    for asked in asking {
        assert_eq!(asked.join().unwrap(), 503);
    }
}
