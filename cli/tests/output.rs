//! What is printed, for people and for programs.

use crate::common::{SOON, Sandbox, UNHURRIED, bare, ended, exit_code, json};

#[test]
fn status_shows_every_lease_in_a_table() {
    let sandbox = Sandbox::new("status");
    let nothing = format!(
        "no leases in sqlite at {}, which nobody has made yet\n",
        sandbox.path("leases.db")
    );
    assert_eq!(sandbox.tenure(&["status"]).stdout, nothing);
    let _holder = sandbox.run(
        &["--candidate", "host-7", "--note", "rack 3"],
        "b/held",
        "sleep 300",
    );
    sandbox.until_held("b/held");
    assert_eq!(sandbox.tenure(&["run", "a/done", "--", "true"]).code, 0);
    let table = sandbox.tenure(&["status"]).stdout;
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("NAME"), "{table}");
    assert!(
        rows[1].starts_with("a/done") && rows[1].contains("vacant"),
        "{table}"
    );
    assert!(
        rows[2].starts_with("b/held") && rows[2].contains(" held "),
        "{table}"
    );
    assert!(
        rows[2].contains("host-7#") && rows[2].contains("rack 3"),
        "{table}"
    );
    let some = sandbox.tenure(&["status", "--prefix", "a/"]).stdout;
    assert!(some.contains("a/done") && !some.contains("b/held"), "{some}");
    let never = sandbox.tenure(&["status", "never"]);
    assert!(
        never.code == 0 && never.stdout.contains("never taken"),
        "{never:?}"
    );
}

#[test]
fn status_in_json_has_every_number() {
    let sandbox = Sandbox::new("status-json");
    let _holder = sandbox.run(&["--ttl", "20s", "--candidate", "host-7"], "job", "sleep 300");
    sandbox.until_held("job");
    let lease = sandbox.lease("job");
    assert_eq!(lease["holder"], "host-7");
    assert_eq!(lease["incarnation"].as_str().unwrap().len(), 32);
    assert_eq!(
        (lease["terms"].as_u64(), lease["ttl_ms"].as_u64()),
        (Some(1), Some(20_000))
    );
    assert!((1..=20_000).contains(&lease["remaining_ms"].as_u64().unwrap()));
    assert!(
        lease["token"].as_u64().unwrap() > 1_000_000_000_000,
        "tokens start at the clock"
    );
    assert_eq!(lease["asked_to_step_down"], false);
    assert!(lease["began_ago_ms"].is_u64(), "{lease}");
}

#[test]
fn who_held_a_lease_last_is_not_told_to_hold_it() {
    let sandbox = Sandbox::new("last-holder");
    let run = ["run", "--candidate", "host-7", "job", "--", "true"];
    assert_eq!(sandbox.tenure(&run).code, 0);
    let lease = sandbox.lease("job");
    assert!(
        lease["holder"].is_null() && lease["incarnation"].is_null(),
        "{lease}"
    );
    assert_eq!(
        (&lease["state"], &lease["last_holder"]),
        (&"vacant".into(), &"host-7".into())
    );
    let table = sandbox.tenure(&["status"]).stdout;
    assert!(table.contains(" (host-7#"), "{table}");
}

#[test]
fn a_note_cannot_steer_the_terminal() {
    let sandbox = Sandbox::new("note");
    // The second is a sequence of one character, which JSON may hold as it is.
    let note = "a\u{1b}[2Jb\u{9b}2Jc\u{202e}d";
    assert_eq!(
        sandbox.tenure(&["run", "--note", note, "job", "--", "true"]).code,
        0
    );
    let table = sandbox.tenure(&["status"]).stdout;
    assert!(table.contains("[2Jb"), "{table}");
    let in_json = sandbox.tenure(&["status", "--output", "json"]).stdout;
    for shown in [table, in_json] {
        assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{shown:?}");
    }
    assert_eq!(sandbox.lease("job")["note"], note);
}

/// What follows on the same line, such as the token, would be read from its end.
#[test]
fn names_and_notes_cannot_turn_the_line_that_shows_them_back_to_front() {
    let sandbox = Sandbox::new("turned");
    let (turned, escaped) = ("a\u{202e}b", "a\\u{202e}b");
    let candidate = format!("host-{turned}");
    let arguments = [
        "run",
        "--candidate",
        &candidate,
        "--note",
        turned,
        turned,
        "--",
        "true",
    ];
    assert_eq!(sandbox.tenure(&arguments).code, 0);
    let run = [
        "run",
        turned,
        "--",
        "sh",
        "-c",
        "\"$0\" fence claim \"a$TENURE_NAME\"",
        env!("CARGO_BIN_EXE_tenure"),
    ];
    let claimed = sandbox.tenure(&run);
    assert_eq!(claimed.code, 0, "{claimed:?}");
    assert!(!claimed.stdout.contains('\u{202e}'), "{claimed:?}");
    for (arguments, times) in [
        (&["status", turned][..], 3),
        (&["history", turned], 1),
        (&["fence", "show"], 2),
    ] {
        let shown = sandbox.tenure(arguments);
        assert_eq!(shown.code, 0, "{shown:?}");
        assert!(!shown.stdout.contains('\u{202e}'), "{shown:?}");
        assert!(shown.stdout.matches(escaped).count() >= times, "{shown:?}");
    }
    for form in ["text", "json"] {
        let log = sandbox
            .tenure(&["-v", "--log-format", form, "run", turned, "--", "true"])
            .stderr;
        let told = log.lines().filter(|line| line.contains("Leadership acquired"));
        assert!(told.clone().count() == 1 && !log.contains('\u{202e}'), "{log}");
        if form == "json" {
            assert_eq!(told.map(json).next().unwrap()["lease"], turned);
        }
    }
    let refused = sandbox.tenure(&["--output", "json", "run", turned, "--", "no such\u{9b}command"]);
    assert!(!refused.stderr.contains(['\u{202e}', '\u{9b}']), "{refused:?}");
    assert!(
        json(&refused.stderr)["error"].as_str().unwrap().contains(turned),
        "{refused:?}"
    );
    let watch = sandbox.start(&["watch", turned]);
    let line = watch.wait_for_line(": vacant", SOON).unwrap();
    assert!(
        line.text.starts_with(escaped) && !line.text.contains('\u{202e}'),
        "{}",
        line.text
    );
    assert_eq!(sandbox.lease(turned)["name"], turned);
}

#[test]
fn watch_prints_a_line_for_each_change() {
    let sandbox = Sandbox::new("watch");
    assert_eq!(sandbox.tenure(&["run", "other", "--", "true"]).code, 0);
    let watch = sandbox.start(&["watch", "job"]);
    watch.wait_for_line("job: never taken", SOON).unwrap();
    let holder = sandbox.run(&["--ttl", "10m"], "job", "sleep 300");
    watch.wait_for_line("job: held by", SOON).unwrap();
    holder.terminate();
    watch.wait_for_line("job: vacant", SOON).unwrap();
    assert!(watch.lines().iter().all(|line| !line.text.contains("other")));
    let all = sandbox.start(&["watch", "--output", "json"]);
    let line = all.wait_for_line("\"name\":\"other\"", SOON).unwrap();
    assert_eq!(json(&line.text)["state"], "vacant");
}

/// Whoever has read what they waited for goes away, and nothing changes that could be printed in vain.
#[test]
fn watch_ends_when_its_reader_has_gone_away() {
    let sandbox = Sandbox::new("watch-unread");
    let _holder = sandbox.run(&["--ttl", "10m"], "job", "sleep 300");
    sandbox.until_held("job");
    let script = format!(
        "{{ {} watch job; echo \"ended with $?\" >&2; }} | grep -m 1 'held by'",
        env!("CARGO_BIN_EXE_tenure")
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).env("TENURE_STORE", &sandbox.store);
    let pipe = tenure_testkit::Process::spawn(command).unwrap();
    pipe.wait_for_line("job: held by", SOON).unwrap();
    pipe.wait_for_line("ended with 141", SOON).unwrap();
    assert_eq!(exit_code(&pipe), 0);
}

#[test]
fn watch_sees_a_lease_expire() {
    let sandbox = Sandbox::new("expire");
    let watch = sandbox.start(&["watch"]);
    let holder = sandbox.run(&["--ttl", "4s"], "job", "sleep 300");
    watch.wait_for_line("job: held by", SOON).unwrap();
    holder.kill_all_at_once();
    watch.wait_for_line("job: expired", SOON).unwrap();
}

/// What it says would not be so: a request to such a store is given up before it is answered.
#[test]
fn no_timing_is_advised_for_a_store_that_is_too_slow_for_any() {
    let at_most = ended(bare(&["explain", "--round-trip", "48min", "--output", "json"]));
    assert_eq!(json(&at_most.stdout)["ttl_ms"], 86_400_000, "{at_most:?}");
    for slower in ["2881s", "24h"] {
        let refused = ended(bare(&["explain", "--round-trip", slower]));
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("48min is the most"), "{refused:?}");
    }
}

#[test]
fn explain_says_what_a_timing_promises_or_all_that_is_wrong() {
    let text = ended(bare(&["explain", "--preset", "batch"])).stdout;
    assert!(
        text.contains("A lease lasts 30s and is renewed every 10s"),
        "{text}"
    );
    let timing = json(&ended(bare(&["explain", "--preset", "controller", "--output", "json"])).stdout);
    assert_eq!(
        (&timing["ttl_ms"], &timing["renew_every_ms"]),
        (&15_000.into(), &2_000.into())
    );
    let advised = json(&ended(bare(&["explain", "--round-trip", "100ms", "--output", "json"])).stdout);
    assert_eq!(advised["ttl_ms"], 3_000);
    let wrong = ended(bare(&[
        "explain", "--ttl", "2d", "--renew", "3d", "--grace", "3d",
    ]));
    assert_eq!(wrong.code, 78);
    assert!(
        wrong.stderr.lines().count() >= 3,
        "not every violation: {wrong:?}"
    );
    let wrong = ended(bare(&[
        "explain", "--ttl", "2d", "--renew", "3d", "--output", "json",
    ]));
    assert_eq!((wrong.code, wrong.stdout.as_str()), (78, ""), "{wrong:?}");
    let told = json(&wrong.stderr);
    assert!(told["violations"].as_array().unwrap().len() >= 2, "{told}");
    assert!(told["error"].is_string() && told["code"] == 78, "{told}");
}

#[test]
fn explain_takes_a_timing_that_was_typed_whatever_the_environment_says() {
    let explain = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = bare(&[&["explain", "--output", "json"], arguments].concat());
        command.envs(variables.iter().copied());
        ended(command)
    };
    let (preset, round_trip) = (("TENURE_PRESET", "batch"), ("TENURE_ROUND_TRIP", "100ms"));
    for variables in [&[preset][..], &[preset, round_trip]] {
        let own = explain(variables, &["--ttl", "15s", "--grace", "4s"]);
        assert_eq!(own.code, 0, "{own:?}");
        let own = json(&own.stdout);
        assert_eq!(
            (&own["ttl_ms"], &own["grace_ms"]),
            (&15_000.into(), &4_000.into())
        );
    }
    let with_more = explain(&[preset, ("TENURE_TTL", "20s")], &["--renew", "3s"]);
    assert_eq!(with_more.code, 0, "{with_more:?}");
    let with_more = json(&with_more.stdout);
    assert_eq!(
        (&with_more["ttl_ms"], &with_more["renew_every_ms"]),
        (&20_000.into(), &3_000.into())
    );
    let typed_twice = explain(&[], &["--preset", "batch", "--grace", "4s"]);
    assert_eq!(typed_twice.code, 2, "{typed_twice:?}");
    assert!(typed_twice.stderr.contains("--grace"), "{typed_twice:?}");
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let sandbox = Sandbox::new("json-errors");
    let ended = sandbox.tenure(&["run", "--output", "json", "--ttl", "0s", "job", "--", "true"]);
    let error = json(&ended.stderr);
    assert_eq!((ended.code, error["code"].as_i64()), (78, Some(78)));
    assert!(error["error"].as_str().unwrap().contains("lease \"job\""));
    let _holder = sandbox.run(&[], "held", "sleep 300");
    sandbox.until_held("held");
    let standby = sandbox.start(&[
        "run", "--ttl", UNHURRIED, "--output", "json", "--wait", "100ms", "held", "--", "true",
    ]);
    assert_eq!(exit_code(&standby), 75);
    let lines = standby.lines();
    assert_eq!(json(&lines[0].text)["event"], "standby");
    assert_eq!(json(&lines[1].text)["code"], 75);
}

#[test]
fn quiet_leaves_only_errors() {
    let sandbox = Sandbox::new("quiet");
    let _holder = sandbox.run(&[], "job", "sleep 300");
    sandbox.until_held("job");
    let ended = sandbox.tenure(&[
        "run", "--ttl", UNHURRIED, "-q", "--wait", "100ms", "job", "--", "true",
    ]);
    assert_eq!((ended.code, ended.stderr.lines().count()), (75, 1), "{ended:?}");
}

/// Whoever reads nothing but what is printed, as of a job of cron, hears of a job that was killed half-way.
#[test]
fn quiet_does_not_hide_that_a_term_was_lost() {
    let sandbox = Sandbox::new("quiet-lost");
    let run = sandbox.run(
        &["--quiet", "--ttl", UNHURRIED, "--renew", "1s"],
        "job",
        "sleep 300",
    );
    sandbox.until_held("job");
    let forced = sandbox.tenure(&["step-down", "--force", "job"]);
    assert_eq!((forced.code, exit_code(&run)), (0, 79), "{forced:?}");
    let said: Vec<String> = run.lines().into_iter().map(|line| line.text).collect();
    assert!(said.len() == 1 && said[0].contains("has ended"), "{said:?}");
}

#[test]
fn the_log_says_more_when_asked() {
    let sandbox = Sandbox::new("log");
    let ended = sandbox.tenure(&["run", "-v", "job", "--", "true"]);
    assert!(ended.stderr.contains("Leadership acquired"), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

#[test]
fn every_command_has_help_with_examples() {
    for command in [
        "run",
        "status",
        "watch",
        "step-down",
        "gc",
        "explain",
        "doctor",
        "completions",
    ] {
        let ended = ended(bare(&[command, "--help"]));
        assert_eq!(ended.code, 0, "{command}");
        assert!(
            ended.stdout.contains("Examples:\n  tenure "),
            "{command}: {}",
            ended.stdout
        );
    }
    let top = ended(bare(&["--help"])).stdout;
    for part in [
        "Examples:",
        "Exit codes:",
        "75   another candidate",
        "79   leadership",
    ] {
        assert!(top.contains(part), "{part}: {top}");
    }
}

#[test]
fn completions_are_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = ended(bare(&["completions", shell]));
        assert!(
            ended.code == 0 && ended.stdout.contains("step-down"),
            "{shell}: {ended:?}"
        );
        for hidden in ["warden", "no-fork", "unlock"] {
            assert!(!ended.stdout.contains(hidden), "{shell} offers {hidden}");
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_crash() {
    let sandbox = Sandbox::new("pipe");
    let script = format!("{} completions bash | head -1", env!("CARGO_BIN_EXE_tenure"));
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(sandbox.dir.path());
    let ended = ended(command);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}

#[test]
fn the_log_is_json_where_it_is_asked_for_and_the_words_stay_words() {
    let sandbox = Sandbox::new("log-format");
    let run = |options: &[&str]| {
        let ended = sandbox.tenure(&[options, &["run", "-v", "job", "--", "true"]].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stderr
    };
    let log = run(&["--log-format", "json"]);
    let acquired = log
        .lines()
        .map(json)
        .find(|line| line["message"] == "Leadership acquired");
    let acquired = acquired.expect(&log);
    assert_eq!(acquired["level"], "INFO");
    // A collector that has once taken them for numbers drops what comes as text.
    for number in ["token", "terms", "ttl_ms", "round_trip_ms"] {
        assert!(acquired[number].is_number(), "{number}: {acquired}");
    }
    let log = run(&["--output", "json", "--log-format", "text"]);
    assert!(
        log.contains("Leadership acquired") && !log.starts_with('{'),
        "{log}"
    );
}
