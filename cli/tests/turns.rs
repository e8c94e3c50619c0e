//! `tenure run` takes turns: one at a time, and every way to wait for it.

use crate::common::{SOON, Sandbox, UNHURRIED, ended, exit_code};
use std::time::Duration;
use tenure_testkit::eventually;

#[test]
fn one_runs_at_a_time_and_tokens_rise() {
    let sandbox = Sandbox::new("turns");
    let log = sandbox.path("log");
    // Each line is one write to a file that is opened for appending: lines do not mix.
    let script = format!("echo start $TENURE_TOKEN >> {log}; sleep 0.2; echo end $TENURE_TOKEN >> {log}");
    let contenders: Vec<_> = (0..5).map(|_| sandbox.run(&[], "job", &script)).collect();
    for contender in &contenders {
        assert_eq!(exit_code(contender), 0);
    }
    let text = sandbox.read("log");
    let lines: Vec<(&str, u64)> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(what, token)| (what, token.parse().unwrap()))
        .collect();
    assert_eq!(lines.len(), 10, "{text}");
    let mut highest = 0;
    for turn in lines.chunks(2) {
        let [("start", begun), ("end", done)] = turn else {
            panic!("two ran at once:\n{text}")
        };
        assert_eq!(begun, done, "two ran at once:\n{text}");
        assert!(*begun > highest, "a token did not rise:\n{text}");
        highest = *begun;
    }
}

#[test]
fn the_exit_code_of_the_command_is_passed_on() {
    let sandbox = Sandbox::new("exit-code");
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let ended = sandbox.tenure(&["run", "--ttl", UNHURRIED, "job", "--", "sh", "-c", script]);
        assert_eq!(ended.code, code, "{script}: {ended:?}");
        assert_eq!(
            (ended.stdout.as_str(), ended.stderr.as_str()),
            ("", ""),
            "{script}"
        );
        assert_eq!(sandbox.lease("job")["state"], "vacant", "{script}");
    }
}

#[test]
fn no_wait_ends_at_once_in_silence_when_another_holds_it() {
    let sandbox = Sandbox::new("no-wait");
    let holder = sandbox.run(&[], "job", "sleep 60");
    sandbox.until_held("job");
    let script = format!("touch {}", sandbox.path("ran"));
    let second = [
        "run",
        "--ttl",
        UNHURRIED,
        "--no-wait",
        "job",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let ended = sandbox.tenure(&second);
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (75, "", "")
    );
    let chosen = sandbox.tenure(&[&["run", "-E", "0"], &second[1..]].concat());
    assert_eq!((chosen.code, chosen.stderr.as_str()), (0, ""));
    assert!(
        !sandbox.dir.join("ran").exists(),
        "the command ran beside the holder's"
    );
    holder.terminate();
    assert_eq!(exit_code(&holder), 143);
    assert_eq!(sandbox.tenure(&second).code, 0);
    assert!(sandbox.dir.join("ran").exists());
}

#[test]
fn wait_gives_up_after_its_time_and_says_who_holds_it() {
    let sandbox = Sandbox::new("wait");
    let _holder = sandbox.run(&["--candidate", "first"], "job", "sleep 60");
    sandbox.until_held("job");
    let ended = sandbox.tenure(&["run", "--wait", "300ms", "job", "--", "true"]);
    assert_eq!(ended.code, 75, "{ended:?}");
    let last = ended.stderr.lines().last().unwrap();
    for part in ["lease \"job\"", "first#", "gave up after"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert_eq!(sandbox.lease("job")["terms"], 1, "giving up took the lease");
}

#[test]
fn a_standby_is_woken_by_the_end_of_the_one_before() {
    let sandbox = Sandbox::new("woken");
    let first = sandbox.run(&["--ttl", "10m"], "job", "sleep 60");
    sandbox.until_held("job");
    let second = sandbox.run(&["--ttl", "10m"], "job", "echo token $TENURE_TOKEN");
    second.wait_for_line("waiting; held by", SOON).unwrap();
    first.terminate();
    // Were it not woken, it would wait for ten minutes.
    second.wait_for_line("elected after", SOON).unwrap();
    second.wait_for_line("token 1", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
}

#[test]
fn the_command_is_told_of_its_term() {
    let sandbox = Sandbox::new("environment");
    let ended = sandbox.tenure(&[
        "run",
        "--candidate",
        "host-1",
        "--note",
        "v1.2",
        "job",
        "--",
        "sh",
        "-c",
        "echo $TENURE_NAME $TENURE_CANDIDATE $TENURE_TOKEN $TENURE_STORE",
    ]);
    let lease = sandbox.lease("job");
    let expected = format!("job host-1 {} {}\n", lease["token"], sandbox.store);
    assert_eq!(ended.stdout, expected);
    assert_eq!(lease["note"], "v1.2");
}

#[test]
fn without_any_set_up_the_store_is_in_the_state_directory() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new("no-set-up");
    let mut command = sandbox.command(&["run", "job", "--", "sh", "-c", "echo $TENURE_STORE"]);
    command.env_remove("TENURE_STORE");
    let ended = ended(command);
    let file = sandbox.dir.join("tenure").join("leases.db");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.stdout, format!("sqlite:{}\n", file.display()));
    let mode = file.parent().unwrap().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "others can read who leads");
}

#[test]
fn options_come_from_the_environment_and_the_command_line_wins() {
    let sandbox = Sandbox::new("from-environment");
    let mut command = sandbox.command(&["run", "--no-wait", "--", "sh", "-c", "echo $TENURE_NAME"]);
    command
        .env("TENURE_NAME", "from-env")
        .env("TENURE_TTL", "7s")
        .env("TENURE_WAIT", "1h")
        .env("TENURE_KEEP", "false");
    let by_environment = ended(command);
    assert_eq!(
        (by_environment.code, by_environment.stdout.as_str()),
        (0, "from-env\n")
    );
    assert_eq!(sandbox.lease("from-env")["ttl_ms"], 7000);
    let mut command = sandbox.command(&["run", "typed", "--ttl", "8s", "--", "true"]);
    command.env("TENURE_NAME", "from-env").env("TENURE_TTL", "7s");
    assert_eq!(ended(command).code, 0);
    assert_eq!(sandbox.lease("typed")["ttl_ms"], 8000);
}

#[test]
fn three_cron_lines_run_the_job_once_while_its_lease_is_kept() {
    let sandbox = Sandbox::new("cron");
    // Three who make one file at once may wait long for each other.
    assert_eq!(sandbox.tenure(&["store", "init"]).code, 0);
    let script = "echo ran >> log; while [ ! -e go ]; do sleep 0.05; done";
    let lines: Vec<_> = (0..3)
        .map(|_| sandbox.run(&["--no-wait", "--ttl", UNHURRIED], "backup", script))
        .collect();
    // Whoever comes when the job has ended is right to run it again.
    eventually(SOON, "the others have gone", || {
        lines.iter().filter(|line| line.status().is_some()).count() == 2
    });
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    let mut codes: Vec<i32> = lines.iter().map(exit_code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 75, 75]);
    assert_eq!(sandbox.read("log"), "ran\n");
    assert!(
        lines.iter().all(|line| line.lines().is_empty()),
        "cron would mail this"
    );
}

#[test]
fn a_cron_line_that_waits_in_vain_ends_with_what_it_was_told_to_and_says_nothing() {
    let sandbox = Sandbox::new("cron-waits");
    let line = |wait: &str| {
        let options = [
            "--quiet", "--wait", wait, "-E", "0", "--linger", "5m", "--ttl", UNHURRIED,
        ];
        sandbox.run(&options, "backup", "echo ran >> log")
    };
    let first = line("45s");
    eventually(SOON, "the job has run", || sandbox.read("log") == "ran\n");
    let late = line("1s");
    assert_eq!(exit_code(&late), 0);
    first.terminate();
    assert_eq!(exit_code(&first), 0);
    assert_eq!(sandbox.read("log"), "ran\n");
    assert!(
        [first, late].iter().all(|line| line.lines().is_empty()),
        "cron would mail this"
    );
}

#[test]
fn a_signal_ends_the_waiting() {
    let sandbox = Sandbox::new("signal-while-waiting");
    let holder = sandbox.run(&[], "job", "sleep 60");
    sandbox.until_held("job");
    let standby = sandbox.run(&[], "job", "true");
    standby.wait_for_line("waiting", SOON).unwrap();
    standby.terminate();
    assert_eq!(exit_code(&standby), 143);
    eventually(Duration::from_secs(1), "the holder is undisturbed", || {
        holder.status().is_none()
    });
    assert_eq!(sandbox.lease("job")["terms"], 1);
}
