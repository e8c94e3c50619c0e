//! What the README shows of a fence, run as it stands there.

use crate::common::{SOON, Sandbox, ended, exit_code};
use std::path::{Path, PathBuf};
use std::process::Command;
use tenure_testkit::{Postgres, Process, block_on, with_postgres_programs};

const README: &str = include_str!("../../README.md");
const README_OF_THE_COMMAND: &str = include_str!("../README.md");
const README_OF_POSTGRES: &str = include_str!("../../stores/postgres/README.md");

/// Where both crontabs look for programs if they say nothing: Debian's cron, which knows the fewest folders.
const PATH_OF_CRON: &str = "/usr/bin:/bin";

/// The block of a README in this language that holds `marker`.
fn block(readme: &'static str, language: &str, marker: &str) -> &'static str {
    let opening = format!("```{language}\n");
    let blocks: Vec<&str> = readme.split(&opening).skip(1).collect();
    let mut blocks = blocks
        .into_iter()
        .filter_map(|rest| Some(rest.split_once("```")?.0));
    blocks.find(|block| block.contains(marker)).unwrap()
}

/// The shell commands of the README that hold `marker`.
fn commands(marker: &str) -> &'static str {
    block(README, "sh", marker)
}

/// The folder of this `tenure`.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap()
}

/// The same with the programs that the commands call, and the database of the data.
fn beside(mut command: Command, bank: &str) -> Command {
    with_postgres_programs(&mut command).unwrap();
    let path = std::iter::once(folder().into()).chain(path_of(&command));
    let path = std::env::join_paths(path).unwrap();
    command.env("PATH", path).env("TENURE_FENCE", bank);
    command
}

/// The folders in which the command finds programs.
fn path_of(command: &Command) -> Vec<PathBuf> {
    let path = command.get_envs().find(|(name, _)| *name == "PATH");
    let (_, path) = path.unwrap();
    std::env::split_paths(path.unwrap()).collect()
}

/// The line of a README's crontab that runs the script, as cron starts it: in the folder of the user, without
/// anything of the environment but what cron and the crontab say. Tenure is in `/usr/local/bin` there, `psql`
/// in `/usr/bin`, and the databases are these.
fn cron(readme: &'static str, sandbox: &Sandbox, bank: &str) -> Command {
    let crontab = block(readme, "crontab", "settle.sh");
    let home = sandbox.dir.path();
    let mut cron = Command::new("/bin/sh");
    with_postgres_programs(&mut cron).unwrap();
    let psql = path_of(&cron).remove(0);
    let libraries = cron.get_envs().find(|(name, _)| *name == "LD_LIBRARY_PATH");
    let libraries = libraries.and_then(|(_, path)| path).unwrap().to_owned();
    let installed = |text: &str| {
        let with_psql = text.replace("/usr/bin", &format!("{}:/usr/bin", psql.display()));
        with_psql.replace("/usr/local/bin", &folder().display().to_string())
    };
    cron.env_clear()
        .env("LD_LIBRARY_PATH", libraries)
        .env("PATH", installed(PATH_OF_CRON))
        .envs([("LOGNAME", "app"), ("SHELL", "/bin/sh")])
        .env("HOME", home)
        .current_dir(home);
    for line in crontab.lines() {
        match line.strip_prefix("0 3 * * *  ") {
            Some(line) => cron.args(["-c", &installed(line)]),
            None => match line.split_once('=').unwrap() {
                ("TENURE_STORE", _) => cron.env("TENURE_STORE", &sandbox.store),
                ("TENURE_FENCE", _) => cron.env("TENURE_FENCE", bank),
                (variable, value) => cron.env(variable, installed(value)),
            },
        };
    }
    cron
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
    let start = |readme| {
        let mut line = cron(readme, &sandbox, &bank);
        line.env("TZ", &zone);
        Process::spawn(line).unwrap()
    };
    let settled = (99, 1);
    // The hosts that come later find another day in the database, as where it is of another zone.
    for (readme, day_of_the_database) in [(README, "Etc/GMT+12"), (README_OF_THE_COMMAND, "Etc/GMT-14")] {
        let of_zone = format!("ALTER DATABASE readme_bank SET timezone = '{day_of_the_database}'");
        block_on(server.execute(&of_zone)).unwrap();
        let hosts = [start(readme), start(readme), start(readme)];
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

/// The page of the store, which an operator follows at night: his shell knows neither store nor fence.
#[test]
fn row_of_a_guarded_table_is_corrected_by_hand_as_the_readme_of_postgres_says() {
    let server = block_on(Postgres::shared());
    let bank = server.uri_of("readme_by_hand");
    block_on(async {
        server.execute("CREATE DATABASE readme_by_hand").await.unwrap();
        let account = "CREATE TABLE account (balance int); INSERT INTO account VALUES (100)";
        Postgres::execute_at(&bank, account).await.unwrap();
    });
    let sandbox = Sandbox::new("readme-by-hand");
    for set_up in [
        &["store", "init", "--store", &bank][..],
        &["fence", "guard", "ledger", "--table", "account", "--fence", &bank],
    ] {
        let made = sandbox.tenure(set_up);
        assert_eq!(made.code, 0, "{made:?}");
    }
    let by_hand = block(README_OF_POSTGRES, "sh", "tenure fence claim")
        .replace("postgres://db1/jobs", &sandbox.store)
        .replace("postgres://app@db2/bank", &bank);
    sandbox.script("correct.sql", block(README_OF_POSTGRES, "sql", ":'lease'"));
    let mut correction = shell(&sandbox, &format!("exec < correct.sql\n{by_hand}"), &bank);
    correction.env_remove("TENURE_STORE").env_remove("TENURE_FENCE");
    let corrected = ended(correction);
    assert_eq!(corrected.code, 0, "{corrected:?}");
    let balance: i32 = block_on(async {
        let client = Postgres::client(&bank).await.unwrap();
        client
            .query_one("SELECT balance FROM account", &[])
            .await
            .unwrap()
            .get(0)
    });
    assert_eq!(balance, 7, "{corrected:?}");
    // Whoever asks in the morning whether the job ran is not told of this.
    let history = sandbox.tenure(&["history", "nightly", "--output", "json"]);
    assert!(!history.stdout.contains("exit_code"), "{history:?}");
}
