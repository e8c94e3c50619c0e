//! Each mistake ends in one clear line and a code of its own; nothing is lost, and nobody leads by accident.

use crate::common::{Ended, SOON, Sandbox, bare, ended, exit_code};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// One line, with these parts in it.
#[track_caller]
fn one_line(ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, code, "{ended:?}");
    assert_eq!(ended.stdout, "", "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.starts_with("tenure: "), "{ended:?}");
    for part in parts {
        assert!(
            ended.stderr.contains(part),
            "{part:?} is missing: {}",
            ended.stderr
        );
    }
}

/// Whether the command of `run` was run.
fn ran(sandbox: &Sandbox) -> bool {
    sandbox.dir.join("ran").exists()
}

fn run(sandbox: &Sandbox, options: &[&str], name: &str) -> Ended {
    let touched = sandbox.path("ran");
    let ended = sandbox.tenure(&[&["run"], options, &[name, "--", "touch", &touched]].concat());
    assert!(!ran(sandbox), "it led by accident: {ended:?}");
    ended
}

#[test]
fn names_that_cannot_be_names() {
    let sandbox = Sandbox::new("names");
    let long = "x".repeat(10_000);
    for (name, parts) in [
        ("", ["lease name", "empty"]),
        (long.as_str(), ["10000", "255"]),
        ("a\u{7}b", ["lease name", "control"]),
        ("a/../b", ["a/../b", "part"]),
        ("/../", ["/../", "begins with a slash"]),
        (" a", ["\" a\"", "white space"]),
    ] {
        one_line(&run(&sandbox, &[], name), 78, &parts);
    }
    one_line(
        &run(&sandbox, &["--candidate", ""], "job"),
        78,
        &["candidate id", "empty"],
    );
    let note = "n".repeat(1025);
    one_line(
        &run(&sandbox, &["--note", &note], "job"),
        78,
        &["job", "1025", "1024"],
    );
}

#[test]
fn timings_that_cannot_hold() {
    let sandbox = Sandbox::new("timings");
    for (options, parts) in [
        (&["--ttl", "0s"][..], &["job", "0ns", "100ms to 24h"][..]),
        (&["--ttl", "99ms"], &["99ms", "100ms to 24h"]),
        (&["--ttl", "25h"], &["90000s", "24h"]),
        (
            &["--ttl", "10s", "--renew", "10s"],
            &["renewing every 10s", "ttl 10s"],
        ),
        (
            &["--ttl", "10s", "--grace", "10s"],
            &["grace of 10s", "raise the ttl or shorten the grace"],
        ),
    ] {
        one_line(&run(&sandbox, options, "job"), 78, parts);
    }
    let ended = sandbox.tenure(&["run", "--ttl", "30", "job", "--", "true"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("write it like 30s"), "{ended:?}");
}

#[test]
fn commands_that_cannot_run_take_no_lease() {
    let sandbox = Sandbox::new("commands");
    let plain = sandbox.dir.join("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let plain = plain.display().to_string();
    let folder = sandbox.dir.path().display().to_string();
    for (command, code, part) in [
        ("no-such-command-anywhere", 127, "was not found"),
        ("/no/such/file", 127, "was not found"),
        ("", 127, "was not found"),
        (plain.as_str(), 126, "permission denied"),
        (folder.as_str(), 126, "cannot be executed"),
    ] {
        let ended = sandbox.tenure(&["run", "job", "--", command]);
        one_line(&ended, code, &["lease \"job\"", part]);
        assert!(
            !sandbox.dir.join("leases.db").exists(),
            "the store was opened for {command:?}"
        );
    }
}

/// The interpreter is missing, which only the start itself shows.
#[test]
fn a_command_that_fails_to_start_gives_the_lease_back_at_once() {
    let sandbox = Sandbox::new("interpreter");
    let script = sandbox.script("broken", "#!/no/such/interpreter\n");
    let ended = sandbox.tenure(&["run", "job", "--", script.to_str().unwrap()]);
    one_line(&ended, 127, &["lease \"job\"", "interpreter"]);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

#[test]
fn stores_that_cannot_be() {
    for (store, code, parts) in [
        ("leases.db", 78, &["scheme", "sqlite:"][..]),
        ("zookeeper://host/0", 78, &["\"zookeeper\"", "known:", "sqlite"]),
        ("sqlite:", 78, &["names no file"]),
        (
            "sqlite:/no/such/directory/leases.db",
            69,
            &["/no/such/directory", "mkdir -p"],
        ),
        ("sqlite:/dev", 78, &["is a directory"]),
        ("sqlite:~/leases.db", 78, &["only a shell replaces the tilde"]),
    ] {
        let sandbox = Sandbox::at("stores", store);
        let ended = run(&sandbox, &["--no-wait"], "job");
        one_line(&ended, code, &[&["lease \"job\""], parts].concat());
    }
}

#[test]
fn a_file_of_another_program_is_left_as_it_is() {
    let sandbox = Sandbox::new("foreign");
    let file = sandbox.dir.join("leases.db");
    fs::write(
        &file,
        "this is a text, and no database, for long enough to be read as a header",
    )
    .unwrap();
    let before = fs::read(&file).unwrap();
    one_line(&run(&sandbox, &[], "job"), 65, &["leases.db"]);
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_record_that_cannot_be_understood_is_never_overwritten() {
    for (column, value) in [
        ("token", "-5"),
        ("token", "9223372036854775807"),
        ("token", "253402300800000"),
        ("terms", "-1"),
        ("ttl_ms", "0"),
    ] {
        let sandbox = Sandbox::new("record");
        assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
        assert_eq!(sandbox.tenure(&["run", "fine", "--", "true"]).code, 0);
        let connection = Connection::open(sandbox.dir.join("leases.db")).unwrap();
        let change = format!("UPDATE lease SET {column} = {value} WHERE name = 'job'");
        if connection.execute(&change, []).is_err() {
            panic!("the record could not be damaged: {change}");
        }
        drop(connection);
        one_line(
            &run(&sandbox, &["--no-wait"], "job"),
            65,
            &["lease \"job\"", "left as it"],
        );
        let row = |name: &str| sandbox.tenure(&["status", name]);
        let listed = sandbox.tenure(&["status"]);
        assert_eq!(listed.code, 65, "{listed:?}");
        assert!(listed.stdout.contains("unreadable"), "{listed:?}");
        assert!(
            listed.stdout.contains("fine"),
            "a bad record hides others: {listed:?}"
        );
        assert_eq!(row("job").code, 65);
        assert_eq!(row("fine").code, 0);
    }
}

/// A standby is there for the day on which it is needed.
#[test]
fn a_run_that_waits_goes_on_once_its_record_is_mended_that_could_not_be_understood() {
    let sandbox = Sandbox::new("mended");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    let connection = Connection::open(sandbox.dir.join("leases.db")).unwrap();
    let ttl_is = |millis: u32| {
        let change = "UPDATE lease SET ttl_ms = ?1 WHERE name = 'job'";
        connection.execute(change, [millis]).unwrap();
    };
    ttl_is(0);
    let waiting = sandbox.run(&[], "job", "true");
    waiting.wait_for_line("left as it", SOON).unwrap();
    ttl_is(30_000);
    waiting.wait_for_exit(SOON).unwrap();
    assert_eq!(exit_code(&waiting), 0, "{:?}", waiting.lines());
}

/// Whoever has made it: people still see the others.
#[test]
fn a_record_with_a_key_without_an_end_hides_no_other() {
    let sandbox = Sandbox::new("long-key");
    for name in ["fine", "job"] {
        assert_eq!(sandbox.tenure(&["run", name, "--", "true"]).code, 0);
    }
    let connection = Connection::open(sandbox.dir.join("leases.db")).unwrap();
    let change = "UPDATE lease SET name = ?1 WHERE name = 'job'";
    connection.execute(change, ["x".repeat(100_000)]).unwrap();
    drop(connection);
    let listed = sandbox.tenure(&["status"]);
    assert_eq!(listed.code, 65, "{listed:?}");
    assert!(listed.stdout.contains("\nfine "), "{listed:?}");
    assert!(listed.stdout.contains("unreadable"), "{listed:?}");
    assert!(listed.stdout.lines().all(|line| line.len() < 2_000), "{listed:?}");
}

/// Root may write anywhere: this needs a user who may not.
#[test]
fn a_store_without_permission() {
    let sandbox = Sandbox::new("permission");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    let folder = sandbox.dir.path();
    fs::set_permissions(sandbox.dir.join("leases.db"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = sandbox.command(&["run", "job", "--", "true"]);
    if rustix::process::geteuid().is_root() {
        use std::os::unix::process::CommandExt as _;
        command.uid(65534).gid(65534);
    }
    let ended = ended(command);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    one_line(&ended, 73, &["lease \"job\"", "read-only", "permission"]);
}

#[test]
fn two_candidates_with_one_id_are_two_all_the_same() {
    let sandbox = Sandbox::new("twins");
    let first = sandbox.run(&["--candidate", "twin"], "job", "sleep 300");
    sandbox.until_held("job");
    let second = sandbox.run(&["--candidate", "twin"], "job", "echo mine");
    let line = second.wait_for_line("waiting", crate::common::SOON).unwrap();
    assert!(line.text.contains("this candidate's id"), "{}", line.text);
    first.terminate();
    exit_code(&first);
    assert_eq!(exit_code(&second), 0);
}

#[test]
fn arguments_that_make_no_sense() {
    let sandbox = Sandbox::new("arguments");
    for arguments in [
        &["run", "job"][..],
        &["run", "--once", "--keep", "job", "--", "true"],
        &["run", "--wait", "1s", "--no-wait", "job", "--", "true"],
        &["run", "--name", "other", "job", "--", "true"],
        &["run", "--", "true"],
        &["status", "job", "--prefix", "x"],
        &["explain", "--preset", "batch", "--ttl", "5s"],
        &["--log", "loud", "status"],
        &["no-such-command"],
    ] {
        // The lease is held: a token is only looked at then.
        let ended = sandbox.tenure(arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{arguments:?}");
    }
}

/// Its port, or its host, is mistyped, or nobody has started it.
#[test]
#[cfg(all(
    feature = "postgres",
    feature = "mysql",
    feature = "redis",
    feature = "etcd",
    feature = "nats"
))]
fn a_server_that_is_not_there_is_told_with_a_way_out() {
    let port = tenure_testkit::free_port();
    for (scheme, place) in [
        ("postgres", "/app"),
        ("mysql", "/app"),
        ("redis", ""),
        ("etcd", ""),
        ("nats", "/app"),
    ] {
        let mut status = bare(&["status"]);
        status.env("TENURE_STORE", format!("{scheme}://127.0.0.1:{port}{place}"));
        let status = ended(status);
        assert_eq!(
            (status.code, status.stderr.lines().count()),
            (69, 1),
            "{status:?}"
        );
        assert!(status.stderr.contains("is the server running"), "{status:?}");
    }
}

#[test]
fn a_token_that_is_none_is_told_by_one_code_everywhere() {
    let sandbox = Sandbox::new("no-token");
    for arguments in [
        &["step-down", "job", "--token", "0"][..],
        &["fence", "claim", "ledger", "--lease", "job", "--token", "0"],
        &["fence", "bump", "ledger", "--above", "0"],
    ] {
        one_line(&sandbox.tenure(arguments), 78, &["a fencing token is"]);
    }
    for deed in ["claim", "check"] {
        let none = ["fence", deed, "ledger", "--lease", "job"];
        one_line(&sandbox.tenure(&none), 2, &["TENURE_TOKEN", "--token"]);
    }
}

/// Neither in messages nor in the help, which shows the environment.
#[test]
fn a_password_is_never_printed() {
    let secret = "hunter2-secret";
    for scheme in [
        "mongodb://user:{}@127.0.0.1:1/db?serverSelectionTimeoutMS=100",
        "redis://user:{}@host",
        "etcd://user:{}@127.0.0.1:1",
        "nats://user:{}@127.0.0.1:1/app",
        "nats://{}@127.0.0.1:1",
        "user:{}@host",
        "{}@host:4222",
        "{}:x@host:4222",
    ] {
        let url = scheme.replace("{}", secret);
        for arguments in [
            &["run", "--no-wait", "-vv", "job", "--", "true"][..],
            &["status"],
            &["doctor"],
            &["--help"],
            &["run", "--help"],
        ] {
            let mut command = bare(arguments);
            command.env("TENURE_STORE", &url);
            let ended = ended(command);
            let printed = ended.stdout + &ended.stderr;
            assert!(!printed.contains(secret), "{arguments:?}: {printed}");
        }
    }
    // In the place of something else.
    let sandbox = Sandbox::new("misplaced-url");
    let url = format!("mongodb://user:{secret}@h/db");
    for arguments in [
        &["status", &url][..],
        &["run", &url, "--", "true"],
        &["run", "--candidate", &url, "job", "--", "true"],
        &["fence", "show", &url],
        &["step-down", &url],
        &["history", &url],
        &["doctor", &url],
        &["status", "--output", &url],
        &["doctor", "--ttl", &url],
        &[&url],
    ] {
        for form in ["text", "json"] {
            let ended = ended({
                let mut command = sandbox.command(arguments);
                command.env("TENURE_OUTPUT", form);
                command
            });
            assert!(matches!(ended.code, 2 | 78), "{arguments:?}: {ended:?}");
            let printed = ended.stdout + &ended.stderr;
            assert!(!printed.contains(secret), "{arguments:?}: {printed}");
            assert!(
                printed.contains("looks like a URL; use --store"),
                "{arguments:?}: {printed}"
            );
        }
    }
}

/// A URL is text: the command of a term would be told of another file.
#[test]
fn a_directory_that_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::new("not-utf8");
    let odd = sandbox.dir.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    fs::create_dir(&odd).unwrap();
    let run = ["run", "job", "--", "touch", &sandbox.path("ran")];
    let mut relative = sandbox.command(&run);
    relative.env("TENURE_STORE", "sqlite:leases.db").current_dir(&odd);
    one_line(&ended(relative), 78, &["not UTF-8", "--store sqlite:/PATH"]);
    let mut default = sandbox.command(&run);
    default.env_remove("TENURE_STORE").env("XDG_STATE_HOME", &odd);
    one_line(&ended(default), 78, &["not UTF-8", "--store sqlite:/PATH"]);
    assert!(!ran(&sandbox));
    assert_eq!(fs::read_dir(&odd).unwrap().count(), 0, "nothing was made");
}

/// On a file system of its own, in a mount namespace that ends with the test.
#[test]
fn a_full_disk() {
    let sandbox = Sandbox::new("full");
    let (folder, ran) = (sandbox.path("small"), sandbox.path("ran"));
    fs::create_dir(&folder).unwrap();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    // One lease fits; then the rest is filled, down to the last byte.
    let script = format!(
        "mount -t tmpfs -o size=512k tmpfs '{folder}' && \
         {tenure} run job -- true && \
         {{ cat /dev/zero > '{folder}/filler' 2>/dev/null; true; }} && \
         exec {tenure} run --no-wait -- touch '{ran}'"
    );
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .env("TENURE_NAME", "job")
        .env("TENURE_STORE", format!("sqlite:{folder}/leases.db"));
    let ended = ended(command);
    assert!(!ran_at(&ran), "it led by accident: {ended:?}");
    one_line(&ended, 74, &["lease \"job\"", "full"]);
}

fn ran_at(path: &str) -> bool {
    std::path::Path::new(path).exists()
}
