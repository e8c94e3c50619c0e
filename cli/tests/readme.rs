//! What the README shows of a fence, run as it stands there.

use crate::common::{SOON, Sandbox, ended, exit_code};
use std::path::Path;
use std::process::Command;
use tenure_testkit::{Postgres, Process, block_on, with_postgres_programs};

const README: &str = include_str!("../../README.md");

/// The shell commands of the README that hold `marker`.
fn commands(marker: &str) -> &'static str {
    let blocks = README.split("```sh\n").skip(1);
    let mut blocks = blocks.filter_map(|rest| Some(rest.split_once("```")?.0));
    blocks.find(|block| block.contains(marker)).unwrap()
}

/// The same with the programs that the commands call, and the database of the data.
fn beside(mut command: Command, bank: &str) -> Command {
    with_postgres_programs(&mut command).unwrap();
    let path = command.get_envs().find(|(name, _)| *name == "PATH");
    let path = path.and_then(|(_, path)| path).unwrap().to_owned();
    let tenure = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path =
        std::env::join_paths(std::iter::once(tenure.into()).chain(std::env::split_paths(&path))).unwrap();
    command.env("PATH", path).env("TENURE_FENCE", bank);
    command
}

/// A shell with these commands.
fn shell(sandbox: &Sandbox, script: &str, bank: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).current_dir(sandbox.dir.path());
    beside(shell, bank)
}

/// As where cron fires at three: a day begins and ends in no run of this test.
fn zone_in_which_it_is_three() -> String {
    let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let hour_of_utc = since_1970.as_secs() / 3600 % 24;
    // POSIX names a zone by what is added to its time to get UTC's.
    let behind_utc = i64::try_from(hour_of_utc).unwrap() - 3;
    format!("THREE{behind_utc}")
}

/// What is left of the account, and how many nights are settled.
fn ledger(bank: &str) -> (i32, i64) {
    block_on(async {
        let client = Postgres::client(bank).await.unwrap();
        let ledger = "SELECT (SELECT balance FROM account), (SELECT count(*) FROM settled)";
        let row = client.query_one(ledger, &[]).await.unwrap();
        (row.get(0), row.get(1))
    })
}

#[test]
fn script_of_the_readme_settles_a_night_once_and_nothing_writes_that_has_not_entered() {
    let server = block_on(Postgres::shared());
    let bank = server.uri_of("readme_bank");
    block_on(async {
        server.execute("CREATE DATABASE readme_bank").await.unwrap();
        let account = "CREATE TABLE account (balance int); INSERT INTO account VALUES (100)";
        Postgres::execute_at(&bank, account).await.unwrap();
    });
    let sandbox = Sandbox::new("readme");
    let once = commands("tenure fence guard").replace("postgres://db2/bank", &bank);
    let set_up = ended(shell(&sandbox, &once, &bank));
    assert_eq!(set_up.code, 0, "{set_up:?}");

    let script = commands("#!/bin/sh");
    sandbox.script("settle.sh", script);
    let zone = zone_in_which_it_is_three();
    let start = || {
        let run = sandbox.command(&["run", "--quiet", "--wait", "60s", "nightly", "--", "./settle.sh"]);
        let mut run = beside(run, &bank);
        run.env("TZ", &zone).env_remove("PGTZ");
        Process::spawn(run).unwrap()
    };
    let settled = (99, 1);
    // The hosts that come later find another day in the database, as where it is of another zone.
    for day_of_the_database in ["Etc/GMT+12", "Etc/GMT-14"] {
        let of_zone = format!("ALTER DATABASE readme_bank SET timezone = '{day_of_the_database}'");
        block_on(server.execute(&of_zone)).unwrap();
        let hosts = [start(), start(), start()];
        for host in &hosts {
            host.wait_for_exit(SOON * 3).unwrap();
            assert_eq!(exit_code(host), 0, "{:?}", host.lines());
            // Cron mails what is printed.
            assert!(host.lines().is_empty(), "{:?}", host.lines());
        }
        assert_eq!(ledger(&bank), settled, "{day_of_the_database}");
    }

    let claims = |line: &&str| line.starts_with("tenure fence claim");
    let enter: Vec<&str> = script.lines().filter(|line| !claims(line)).collect();
    let enter = enter.join("\n");
    let of_an_older_term = format!("TENURE_NAME=nightly TENURE_TOKEN=1\n{enter}");
    let plain = r#"psql -Xq "$TENURE_FENCE" -c 'UPDATE account SET balance = 0'"#;
    for (write, refusal) in [
        (of_an_older_term.as_str(), "stale"),
        (plain, "this transaction shows none"),
    ] {
        let refused = ended(shell(&sandbox, write, &bank));
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.stderr.contains(refusal), "{refused:?}");
        assert_eq!(ledger(&bank), settled, "{write}");
    }
}
