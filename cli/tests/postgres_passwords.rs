//! Passwords that the URL of a PostgreSQL server does not have.

use crate::common::{Ended, SOON, Sandbox, ended, exit_code};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use tenure_testkit::{Postgres, Process, block_on, eventually_async};

/// With what a password file escapes.
const SECRET: &str = r"pg:se\cret";
const ESCAPED: &str = r"pg\:se\\cret";

/// A server that asks for passwords, and a role that has one and makes its own schema.
fn server() -> Postgres {
    let server = block_on(Postgres::with_passwords()).unwrap();
    let role = format!("CREATE ROLE app LOGIN PASSWORD '{SECRET}'; GRANT CREATE ON DATABASE postgres TO app");
    block_on(server.execute(&role)).unwrap();
    server
}

fn sandbox(label: &str, server: &Postgres) -> Sandbox {
    Sandbox::at(label, &server.uri_as("app", None, "postgres"))
}

/// Whose home is the sandbox, with these variables.
fn command(sandbox: &Sandbox, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = sandbox.command(arguments);
    for variable in ["PGPASSWORD", "PGPASSFILE", "PGUSER", "PGDATABASE"] {
        command.env_remove(variable);
    }
    command
        .env("HOME", sandbox.dir.path())
        .envs(variables.iter().copied());
    command
}

/// A password file; it is replaced in one step.
fn write(file: &Path, lines: &str, mode: u32) {
    let new = file.with_extension("new");
    fs::write(&new, lines).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
    fs::rename(new, file).unwrap();
}

fn line_of(server: &Postgres, password: &str) -> String {
    format!("127.0.0.1:{}:*:app:{password}\n", server.port())
}

#[test]
fn a_password_that_the_url_of_postgres_does_not_have_is_libpqs() {
    let server = server();
    let sandbox = sandbox("pg-passwords", &server);
    let file = sandbox.dir.join("passwords");
    let (named, home) = (sandbox.path("passwords"), sandbox.dir.join(".pgpass"));
    let asked = |variables: &[(&str, &str)]| ended(command(&sandbox, variables, &["status"]));
    let refused = |asked: &Ended, why: &str| {
        assert_eq!(asked.code, 77, "{asked:?}");
        assert!(asked.stderr.contains(why), "{why}: {asked:?}");
        assert!(
            !asked.stderr.contains(SECRET) && !asked.stderr.contains(ESCAPED),
            "{asked:?}"
        );
    };
    let waiting = ended(command(&sandbox, &[], &["run", "job", "--", "true"]));
    refused(
        &waiting,
        "the server asks for a password; there is none in the URL",
    );
    let made = ended(command(&sandbox, &[("PGPASSWORD", SECRET)], &["store", "init"]));
    assert_eq!(made.code, 0, "{made:?}");
    refused(&asked(&[("PGPASSWORD", "wrong")]), "that of PGPASSWORD");

    write(&home, &line_of(&server, ESCAPED), 0o600);
    let read = asked(&[]);
    assert_eq!(read.code, 0, "{read:?}");
    // Before its file, and before the one in the home.
    refused(
        &asked(&[("PGPASSFILE", &named), ("PGPASSWORD", "wrong")]),
        "that of PGPASSWORD",
    );
    refused(&asked(&[("PGPASSFILE", &named)]), "there is none in the URL");
    write(&file, &line_of(&server, "wrong"), 0o600);
    refused(
        &asked(&[("PGPASSFILE", &named)]),
        &format!("the password is from {named}"),
    );
    let url = server.uri_as("app", Some("wrong"), "postgres");
    let of_url = ended(command(
        &sandbox,
        &[("PGPASSWORD", SECRET)],
        &["status", "--store", &url],
    ));
    refused(&of_url, "check user and password");

    for mode in [0o640, 0o604] {
        write(&file, &line_of(&server, ESCAPED), mode);
        refused(
            &asked(&[("PGPASSFILE", &named)]),
            "is ignored: its group or others have access to it",
        );
    }
    write(&file, &line_of(&server, ESCAPED), 0o400);
    let read = asked(&[("PGPASSFILE", &named)]);
    assert_eq!(read.code, 0, "{read:?}");
}

/// As `psql` takes it, so that one line of the file does for both.
#[test]
fn a_password_of_postgres_is_looked_for_by_the_user_whom_the_url_leaves_to_the_system() {
    let server = server();
    let sandbox = Sandbox::at(
        "pg-no-user",
        &format!("postgres://127.0.0.1:{}/postgres", server.port()),
    );
    let user = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(user.stdout).unwrap().trim_end().to_owned();
    let roles =
        format!("CREATE ROLE \"{user}\" SUPERUSER LOGIN PASSWORD '{SECRET}'; ALTER ROLE app SUPERUSER");
    block_on(server.execute(&roles)).unwrap();
    let home = sandbox.dir.join(".pgpass");
    let line = |user: &str| format!("127.0.0.1:{}:postgres:{user}:{ESCAPED}\n", server.port());
    let init = |variables: &[(&str, &str)]| ended(command(&sandbox, variables, &["store", "init"]));
    write(&home, &line("app"), 0o600);
    let refused = init(&[]);
    assert_eq!(refused.code, 77, "{refused:?}");
    assert!(
        refused.stderr.contains(&format!("for user \"{user}\"")),
        "{refused:?}"
    );
    let by_variable = init(&[("PGUSER", "app")]);
    assert_eq!(by_variable.code, 0, "{by_variable:?}");

    // A variable for the job's own `psql` leads no leases elsewhere.
    let url = format!("postgres://app@127.0.0.1:{}", server.port());
    let elsewhere = ended(command(
        &sandbox,
        &[("PGDATABASE", "postgres")],
        &["status", "--store", &url],
    ));
    assert_eq!(elsewhere.code, 77, "{elsewhere:?}");

    write(&home, &line(&user), 0o600);
    let made = init(&[]);
    assert_eq!(made.code, 0, "{made:?}");
}

#[test]
fn a_password_of_postgres_that_is_changed_in_its_file_is_met_by_the_next_connection() {
    let server = server();
    let sandbox = sandbox("pg-changed-password", &server);
    let home = sandbox.dir.join(".pgpass");
    write(&home, &line_of(&server, ESCAPED), 0o600);
    let made = ended(command(&sandbox, &[], &["store", "init"]));
    assert_eq!(made.code, 0, "{made:?}");
    let arguments = [
        "run",
        "--ttl",
        "30s",
        "job",
        "--",
        "sh",
        "-c",
        "echo leads; exec sleep 300",
    ];
    let leader = Process::spawn(command(&sandbox, &[], &arguments)).unwrap();
    leader.wait_for_line("leads", SOON).unwrap();
    write(&home, &line_of(&server, "next"), 0o600);
    block_on(async {
        server.execute("ALTER ROLE app PASSWORD 'next'").await.unwrap();
        let client = Postgres::client(&server.uri()).await.unwrap();
        let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";
        client.execute(ended, &[]).await.unwrap();
        let connected = "SELECT 1 FROM pg_stat_activity WHERE usename = 'app' AND state = 'idle'";
        let is_back = async || !client.query(connected, &[]).await.unwrap().is_empty();
        eventually_async(SOON, "a connection by the new password", is_back).await;
    });
    leader.terminate();
    assert_eq!(exit_code(&leader), 143);
}
