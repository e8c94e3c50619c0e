//! What is said of a command's care has an effect, or is refused before anybody campaigns.

use crate::common::{Ended, Sandbox, UNHURRIED, ended};

/// `tenure run` with these options, and these variables; its command leaves a file `ran`.
fn run(sandbox: &Sandbox, options: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = sandbox.command(
        &[
            &["run", "--ttl", UNHURRIED],
            options,
            &["job", "--", "touch", "ran"],
        ]
        .concat(),
    );
    command.envs(variables.iter().copied());
    ended(command)
}

#[track_caller]
fn is_refused(options: &[&str], parts: &[&str]) {
    let sandbox = Sandbox::new("care-arguments");
    let ended = run(&sandbox, options, &[]);
    assert_eq!(ended.code, 2, "{options:?}: {ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    assert!(!sandbox.dir.join("ran").exists(), "{options:?}");
}

#[test]
fn an_option_without_effect_is_refused() {
    for (option, value, needed) in [
        ("--heartbeat-within", "5s", "--heartbeat-file"),
        ("--health-every", "5s", "--health-cmd or --health-http"),
        ("--health-timeout", "5s", "--health-cmd or --health-http"),
        ("--health-retries", "5", "--health-cmd or --health-http"),
        ("--hook-timeout", "5s", "--on-elected or --on-lost"),
        ("--cooldown", "5s", "--restart or --keep"),
    ] {
        is_refused(&[option, value], &[option, "needs", needed]);
    }
}

/// It would be well for ever, or be killed as it starts.
#[test]
fn an_empty_command_and_a_time_of_zero_are_refused() {
    for option in ["--health-cmd", "--on-elected", "--on-lost"] {
        is_refused(&[option, " "], &[option, "is empty"]);
    }
    is_refused(
        &["--health-cmd", "true", "--health-timeout", "0s"],
        &["--health-timeout", "longer than 0"],
    );
    is_refused(
        &["--on-lost", "true", "--hook-timeout", "0s"],
        &["--hook-timeout", "longer than 0"],
    );
}

/// They may be set for all that run on a host.
#[test]
fn variables_without_effect_change_nothing() {
    let sandbox = Sandbox::new("care-variables");
    let variables = [
        ("TENURE_HEARTBEAT_WITHIN", "5s"),
        ("TENURE_HEALTH_EVERY", "5s"),
        ("TENURE_HOOK_TIMEOUT", "5s"),
        ("TENURE_COOLDOWN", "5s"),
        ("TENURE_HEALTH_CMD", ""),
        ("TENURE_ON_ELECTED", ""),
    ];
    let ended = run(&sandbox, &[], &variables);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    assert!(sandbox.dir.join("ran").exists());
}

#[test]
fn what_has_an_effect_is_accepted() {
    for options in [
        &["--keep", "--cooldown", "5s"][..],
        &["--restart", "no", "--cooldown", "5s"],
        &["--heartbeat-file", "beat", "--heartbeat-within", "50s"],
        &["--health-http", "http://127.0.0.1:1/", "--health-retries", "9"],
        &["--on-lost", "true", "--hook-timeout", "9s"],
    ] {
        let sandbox = Sandbox::new("care-effect");
        let ended = run(&sandbox, options, &[]);
        assert_eq!(ended.code, 0, "{options:?}: {ended:?}");
    }
}

#[test]
fn the_probe_of_the_command_line_wins_over_one_in_the_environment() {
    let sandbox = Sandbox::new("care-probes");
    let often = ["--health-every", "50ms", "--health-retries", "1"];
    let run = |probe: [&str; 2], variable: (&str, &str), script: &str| {
        let words = [&["run"], &probe[..], &often, &["job", "--", "sh", "-c", script]].concat();
        let mut command = sandbox.command(&words);
        command.env(variable.0, variable.1);
        ended(command)
    };
    let nobody = "http://127.0.0.1:1/";
    let asked = "while [ ! -e asked ]; do sleep 0.05; done";
    let by_command = run(
        ["--health-cmd", "touch asked"],
        ("TENURE_HEALTH_HTTP", nobody),
        asked,
    );
    assert_eq!(by_command.code, 0, "{by_command:?}");
    let by_page = run(
        ["--health-http", nobody],
        ("TENURE_HEALTH_CMD", "true"),
        "sleep 100",
    );
    assert_eq!(by_page.code, 79, "{by_page:?}");
    assert!(by_page.stderr.contains("--health-http failed"), "{by_page:?}");
}
