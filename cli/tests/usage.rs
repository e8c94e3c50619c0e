//! Wrong arguments are told in the form that was asked for.

use crate::common::{Ended, Sandbox, UNHURRIED, ended, json};

const WRONG: [(&[&str], &str); 12] = [
    (&["no-such-command"], "no-such-command"),
    (
        &["run", "--no-such-option", "job", "--", "true"],
        "--no-such-option",
    ),
    (&["run", "job"], "comes behind --"),
    (&["run", "--ttl", "30", "job", "--", "true"], "write it like 30s"),
    (
        &["run", "--wait", "1s", "--no-wait", "job", "--", "true"],
        "--no-wait",
    ),
    (
        &["run", "--cooldown", "1s", "job", "--", "true"],
        "--restart or --keep",
    ),
    (&["lock", "-s", "job", "--", "true"], "-s"),
    (
        &["status", "job", "--prefix", "x"],
        "NAME cannot be used with --prefix",
    ),
    (&["fence", "claim"], "see tenure fence claim --help"),
    // What an option says is no command.
    (
        &["--store", "status", "fence", "claim"],
        "see tenure fence claim --help",
    ),
    (&["run", "job", "echo", "hi"], "NAME -- echo"),
    (&["-q", "-v", "status"], "--quiet cannot be used with --verbose"),
];

/// One object in one line, with this in what it says.
#[track_caller]
fn is_told_in_json(ended: &Ended, part: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let told = json(&ended.stderr);
    assert_eq!(told["code"], 2, "{told}");
    let error = told["error"].as_str().unwrap();
    assert!(error.contains(part) && !error.contains('\n'), "{told}");
}

#[test]
fn wrong_arguments_are_told_in_json_where_that_is_asked_for() {
    let sandbox = Sandbox::new("usage");
    for (arguments, part) in WRONG {
        for option in [&["--output", "json"][..], &["--output=json"]] {
            is_told_in_json(&sandbox.tenure(&[option, arguments].concat()), part);
        }
        let mut command = sandbox.command(arguments);
        command.env("TENURE_OUTPUT", "json");
        is_told_in_json(&ended(command), part);
    }
}

#[test]
fn wrong_arguments_are_told_in_words_else_and_help_is_help() {
    let sandbox = Sandbox::new("usage-words");
    for (arguments, part) in WRONG {
        // What comes after `--` is the command's.
        let others = [arguments, &["--output", "json"][..]].concat();
        let is_for_command = arguments.contains(&"--");
        let mut command = sandbox.command(if is_for_command { &others } else { arguments });
        command.env("TENURE_OUTPUT", "text");
        let ended = ended(command);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
        assert!(ended.stderr.starts_with("tenure: "), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    let help = sandbox.tenure(&["--output", "json", "run", "--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{help:?}");
    assert!(help.stdout.contains("Usage:"), "{help:?}");
}

/// The help of this command, and the variables that it names.
fn help_and_variables(sandbox: &Sandbox, words: &[&str]) -> (String, Vec<String>) {
    let help = sandbox.tenure(&[words, &["--help"]].concat()).stdout;
    let named = help.split("[env: ").skip(1);
    let named = named.map(|rest| rest.split([']', '=']).next().unwrap().to_owned());
    let variables = named.collect();
    (help, variables)
}

#[test]
fn the_help_names_the_variable_of_each_option() {
    let sandbox = Sandbox::new("named-variables");
    for words in [
        &["run"][..],
        &["lock"],
        &["status"],
        &["watch"],
        &["top"],
        &["history"],
        &["step-down"],
        &["fence", "claim"],
        &["fence", "bump"],
        &["fence", "guard"],
        &["gc"],
        &["explain"],
        &["doctor"],
        &["store", "init"],
    ] {
        let (help, variables) = help_and_variables(&sandbox, words);
        // What is said of an option stands further to the right.
        let begins = |line: &&str| {
            line.find('-') == Some(line.len() - line.trim_start().len()) && !line.starts_with("        ")
        };
        let options = help.lines().filter(begins).filter_map(|line| {
            let (_, long) = line.split_once("--")?;
            long.split([' ', '.']).next()
        });
        // A lock is exclusive whatever a variable says.
        let options = options.filter(|option| !["help", "exclusive"].contains(option));
        let options: Vec<&str> = options.collect();
        assert!(options.contains(&"store"), "{help}");
        // What is no option may come by a variable, too: a name.
        let named = variables.len();
        assert!(named >= options.len(), "{words:?}: {variables:?} {options:?}");
        assert!(variables.iter().all(|variable| variable.starts_with("TENURE_")));
    }
}

/// They are set for all that run on a host, and are nothing here. The help names them all. Those of places
/// are the exception.
#[test]
fn empty_variables_say_nothing() {
    for (words, rest) in [
        (&["run"][..], &["job", "--", "true"][..]),
        (&["lock"], &["lock", "--", "true"]),
        (&["status"], &[]),
        (&["history"], &["job"]),
        (&["step-down"], &["job"]),
        (&["doctor"], &[]),
        (&["gc"], &[]),
        (&["explain"], &[]),
        (&["fence", "show"], &[]),
        (&["fence", "claim"], &["ledger", "--lease", "job", "--token", "7"]),
        (&["fence", "bump"], &["ledger"]),
    ] {
        let sandbox = Sandbox::new("empty-variables");
        let (help, named) = help_and_variables(&sandbox, words);
        for variable in ["TENURE_STORE", "TENURE_OUTPUT", "TENURE_LOG"] {
            assert!(named.iter().any(|named| named == variable), "{help}");
        }
        let mut command = sandbox.command(&[words, rest].concat());
        let names_a_place = |variable: &String| ["TENURE_STORE", "TENURE_FENCE"].contains(&variable.as_str());
        for variable in named.iter().filter(|variable| !names_a_place(variable)) {
            command.env(variable, "");
        }
        let ended = ended(command);
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (0, ""),
            "{words:?}: {ended:?}"
        );
    }
}

/// As by a script whose own variable is not set: each host would lead in a store of its own.
#[test]
fn a_place_that_was_typed_and_is_empty_is_refused() {
    let claim = ["fence", "claim", "ledger", "--lease", "job", "--token", "7"];
    for (words, option) in [
        (
            &["run", "--store", "", "job", "--", "touch", "ran"][..],
            "--store",
        ),
        (&["lock", "--store=", "job", "--", "touch", "ran"], "--store"),
        (&["--store", "", "status"], "--store"),
        (&[&claim[..], &["--fence", ""]].concat(), "--fence"),
        (&["status", "--fence="], "--fence"),
    ] {
        let sandbox = Sandbox::new("empty-place");
        let ended = sandbox.tenure(words);
        assert_eq!(ended.code, 2, "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(option), "{words:?}: {ended:?}");
        assert!(!sandbox.dir.join("ran").exists(), "{words:?}");
    }
}

/// A host gives all its candidates a priority, and has a line in its crontab.
#[test]
fn a_priority_in_the_environment_excludes_nothing_that_was_typed() {
    let sandbox = Sandbox::new("priority-variable");
    let run = |options: &[&str], variables: &[(&str, &str)]| {
        let mut command = sandbox.command(&[&["run"], options, &["job", "--", "true"]].concat());
        command
            .envs(variables.iter().copied())
            .env("TENURE_TTL", UNHURRIED);
        let ended = ended(command);
        (ended.code, ended.stderr)
    };
    let (priority, preempt, no_wait) = (
        ("TENURE_PRIORITY", "5"),
        ("TENURE_PREEMPT", "1"),
        ("TENURE_NO_WAIT", "1"),
    );
    let done = (0, String::new());
    assert_eq!(run(&["--no-wait"], &[priority]), done);
    assert_eq!(run(&["--no-wait"], &[priority, preempt]), done);
    assert_eq!(run(&[], &[preempt]), done);
    assert_eq!(run(&["--priority", "5"], &[no_wait]), done);
    for (options, variables, part) in [
        (
            &["--no-wait", "--priority", "5"][..],
            &[][..],
            "--priority cannot be used with --no-wait",
        ),
        (
            &[],
            &[priority, no_wait],
            "--priority cannot be used with --no-wait",
        ),
        (&["--preempt"], &[], "--preempt needs --priority"),
        (
            &["--preempt", "--no-wait"],
            &[priority],
            "--preempt needs --priority",
        ),
    ] {
        let (code, stderr) = run(options, variables);
        assert_eq!(code, 2, "{options:?} {variables:?}: {stderr}");
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn a_variable_that_is_empty_is_none_that_is_missing() {
    let sandbox = Sandbox::new("empty-token");
    let mut command = sandbox.command(&["fence", "claim", "ledger", "--lease", "job"]);
    command.env("TENURE_TOKEN", "");
    let claim = ended(command);
    assert_eq!(claim.code, 2, "{claim:?}");
    assert!(claim.stderr.contains("--token"), "{claim:?}");
    // Whose token it is, is not said: it counts as one without a name beside it.
    let mut command = sandbox.command(&["fence", "claim", "ledger", "--lease", "job"]);
    command.env("TENURE_TOKEN", "7").env("TENURE_NAME", "");
    let claim = ended(command);
    assert_eq!(claim.code, 0, "{claim:?}");
}

/// Nobody has typed what is wrong: a message that names an option alone would be looked for in vain.
#[test]
fn a_value_that_is_wrong_in_a_variable_is_told_with_the_variable() {
    let sandbox = Sandbox::new("wrong-variable");
    for (variable, value, option) in [
        ("TENURE_TTL", "5", "--ttl"),
        ("TENURE_KEEP", "maybe", "--keep"),
        ("TENURE_VERBOSE", "much", "--verbose"),
        ("TENURE_CONFLICT_EXIT_CODE", "300", "--conflict-exit-code"),
    ] {
        let mut command = sandbox.command(&["run", "job", "--", "touch", "ran"]);
        command.env(variable, value);
        let told = ended(command);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(
            told.stderr.contains(option) && told.stderr.contains(&format!("(from {variable})")),
            "{told:?}"
        );
        assert!(!sandbox.dir.join("ran").exists());
    }
    // The letter of --wait in what another option says.
    let mut command = sandbox.command(&["lock", "-cwhoami", "job"]);
    command.env("TENURE_WAIT", "abc");
    let told = ended(command);
    assert!(told.stderr.contains("(from TENURE_WAIT)"), "{told:?}");
}

#[test]
fn how_much_is_told_goes_by_what_was_typed() {
    let sandbox = Sandbox::new("loudness");
    let run = |options: &[&str], variables: &[(&str, &str)]| {
        let mut command = sandbox.command(&[&["run"], options, &["job", "--", "true"]].concat());
        command.envs(variables.iter().copied());
        let ended = ended(command);
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stderr
    };
    let (quiet, verbose, level) = (
        ("TENURE_QUIET", "1"),
        ("TENURE_VERBOSE", "2"),
        ("TENURE_LOG", "debug"),
    );
    for (options, variables, is_told) in [
        (&["-v"][..], &[quiet][..], true),
        (&["-v"], &[quiet, verbose], true),
        (&["-q"], &[verbose], false),
        (&["-q"], &[level], false),
        (&["-v"], &[("TENURE_LOG", "off")], true),
        (&[], &[quiet, verbose], false),
        (&[], &[quiet, level], true),
        (&["-v"], &[("TENURE_QUIET", "no")], true),
    ] {
        let told = run(options, variables);
        assert_eq!(
            told.contains("Leadership acquired"),
            is_told,
            "{options:?} {variables:?}: {told}"
        );
    }
}

/// `tenure lock` is told seconds as flock(1) is, and both have one variable.
#[test]
fn a_bare_number_is_seconds_wherever_it_is_waited() {
    let sandbox = Sandbox::new("bare-number");
    assert_eq!(
        sandbox.tenure(&["run", "--wait", "5", "job", "--", "true"]).code,
        0
    );
    let mut command = sandbox.command(&["run", "job", "--", "true"]);
    command.env("TENURE_WAIT", "0.5");
    assert_eq!(ended(command).code, 0);
    assert_eq!(sandbox.tenure(&["step-down", "job", "--wait", "5"]).code, 0);
}

#[test]
fn top_does_not_look_without_a_pause() {
    let ended = Sandbox::new("top-restless").tenure(&["top", "--every", "0s"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("longer than 0"), "{ended:?}");
}
