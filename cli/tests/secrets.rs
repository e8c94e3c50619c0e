//! A password in a URL for something beside the store is refused, and shown nowhere.

use crate::common::{Sandbox, ended};

const SECRET: &str = "hunter2-secret";

/// It is refused with `code` before anything runs, and the way out is said.
#[track_caller]
fn is_refused_unseen(option: &str, variable: &str, url: &str, code: i32, way_out: &str) {
    let url = url.replace("{}", SECRET);
    for form in ["text", "json"] {
        for is_variable in [false, true] {
            let sandbox = Sandbox::new("secrets");
            let given = [option, url.as_str()];
            let options = if is_variable { &[][..] } else { &given };
            let global = ["--output", form];
            let mut command =
                sandbox.command(&[&["run"], &global[..], options, &["job", "--", "touch", "ran"]].concat());
            // Typed, it would overrule a level of the log in a variable.
            command.env("TENURE_VERBOSE", "3");
            if is_variable {
                command.env(variable, &url);
            }
            let ended = ended(command);
            let which = format!("{option} {form} {is_variable}: {ended:?}");
            assert_eq!(ended.code, code, "{which}");
            assert!(!ended.stderr.contains(SECRET), "{which}");
            assert!(ended.stderr.contains(way_out), "{which}");
            assert!(!sandbox.dir.join("ran").exists(), "{which}");
        }
    }
}

#[test]
fn a_password_in_the_url_of_a_health_page_is_refused_and_not_shown() {
    for url in [
        "http://user:{}@127.0.0.1:1/health",
        "http://{}@127.0.0.1:1/health",
        "https://user:{}@127.0.0.1:1/health",
        "user:{}@127.0.0.1:1",
    ] {
        is_refused_unseen("--health-http", "TENURE_HEALTH_HTTP", url, 2, "--health-cmd");
    }
}

/// It would be sent as it stands, and stand in the log with `-vvv`.
#[cfg(feature = "opentelemetry")]
#[test]
fn a_password_in_the_url_of_a_collector_is_refused_and_not_shown() {
    for url in [
        "http://user:{}@127.0.0.1:1",
        "https://user:{}@127.0.0.1:1/v1",
        "user:{}@127.0.0.1:1",
        "http://user:a/{}@127.0.0.1:1",
    ] {
        is_refused_unseen("--otlp", "TENURE_OTLP", url, 78, "OTEL_EXPORTER_OTLP_HEADERS");
    }
}

/// Somebody has taken the option for another.
#[test]
fn a_password_in_a_url_that_was_given_as_a_file_or_an_address_is_not_shown() {
    let url = "postgres://user:{}@127.0.0.1:1/jobs";
    for (option, variable, way_out) in [
        ("--metrics", "TENURE_METRICS", "HOST:PORT"),
        ("--trace", "TENURE_TRACE", "folder that you may write to"),
        (
            "--heartbeat-file",
            "TENURE_HEARTBEAT_FILE",
            "that the command may write to",
        ),
    ] {
        is_refused_unseen(option, variable, url, 78, way_out);
    }
    for beginning in ["", "info,", "tenure="] {
        let levels = format!("{beginning}{url}");
        is_refused_unseen("--log", "TENURE_LOG", &levels, 2, "a level such as info");
    }
    is_refused_unseen(
        "--metrics",
        "TENURE_METRICS",
        "user:{}@127.0.0.1:1",
        78,
        "HOST:PORT",
    );
}

#[test]
fn a_password_in_a_url_that_was_given_as_a_candidate_is_not_shown() {
    let url = format!("postgres://user:{SECRET}@127.0.0.1:1/jobs");
    let ended = Sandbox::new("secret-candidate").tenure(&["step-down", "job", "--to", &url]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("looks like a URL"), "{ended:?}");
    assert!(!ended.stderr.contains(SECRET), "{ended:?}");
}

/// The URLs of many chats hold one, and a hook fails where its chat is away.
#[test]
fn a_password_in_a_hook_that_fails_is_not_shown() {
    let sandbox = Sandbox::new("secret-hook");
    let hook = format!("test {SECRET} = other");
    for option in ["--on-elected", "--on-lost"] {
        for form in ["text", "json"] {
            let ended = sandbox.tenure(&["run", "--output", form, option, &hook, "job", "--", "true"]);
            assert_eq!(ended.code, 0, "{ended:?}");
            assert!(ended.stderr.contains(option), "{ended:?}");
            assert!(!ended.stderr.contains(SECRET), "{ended:?}");
        }
    }
}

#[test]
fn a_password_in_a_url_that_was_given_as_a_command_or_a_table_is_not_shown() {
    let sandbox = Sandbox::new("secrets-misplaced");
    let url = format!("postgres://user:{SECRET}@db1/jobs");
    for (arguments, code) in [
        (&["run", "job", "--", &url][..], 127),
        (&["lock", "job", "--", &url], 127),
        (&["fence", "guard", "ledger", "--table", &url], 2),
        (&["fence", "unguard", "--table", &url], 2),
    ] {
        for form in ["text", "json"] {
            let ended = sandbox.tenure(&[&["--output", form], arguments].concat());
            assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
            let printed = ended.stdout + &ended.stderr;
            assert!(!printed.contains(SECRET), "{arguments:?}: {printed}");
            assert!(printed.contains("looks like a URL"), "{arguments:?}: {printed}");
        }
    }
}
