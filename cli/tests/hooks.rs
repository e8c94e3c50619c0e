//! Hooks: in which order they hear, and where they write.

use crate::common::{Sandbox, UNHURRIED, ended};

/// One that takes its time is not overtaken by the next, over several terms.
#[test]
fn hooks_hear_in_the_order_of_what_happened() {
    let sandbox = Sandbox::new("hooks-in-order");
    let hooks = [
        "--on-elected",
        "sleep 0.5; echo elected $TENURE_TOKEN >> told",
        "--on-lost",
        "echo lost $TENURE_TOKEN >> told",
    ];
    let again = ["--restart", "on-failure", "--cooldown", "0s"];
    let script =
        "echo elected $TENURE_TOKEN >> ran; echo lost $TENURE_TOKEN >> ran; test $(wc -l < ran) -ge 6";
    let job = ["job", "--", "sh", "-c", script];
    let ended = sandbox.tenure(&[&["run"], &hooks[..], &again, &job].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    let ran = sandbox.read("ran");
    assert_eq!(ran.lines().count(), 6, "{ran}");
    assert_eq!(sandbox.read("told"), ran);
}

/// The bound of those that wait: the hook of the first term hangs until all terms are over.
#[test]
fn a_hook_that_was_not_to_be_run_is_said() {
    let sandbox = Sandbox::new("hooks-bounded");
    let hook = "while [ ! -e over ]; do sleep 0.02; done; echo $TENURE_TOKEN >> told";
    let options = [
        "--restart",
        "on-failure",
        "--cooldown",
        "0s",
        "--hook-timeout",
        "10m",
    ];
    let script = "echo $TENURE_TOKEN >> ran; test $(wc -l < ran) -ge 20 && touch over";
    let job = ["job", "--", "sh", "-c", script];
    let ended = sandbox.tenure(&[&["run", "--on-elected", hook], &options[..], &job].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    let not_run = ended.stderr.matches("not run, as 16 wait before it").count();
    assert!(not_run > 0, "{ended:?}");
    let told = sandbox.read("told");
    assert_eq!(told.lines().count() + not_run, 20, "{told}");
}

/// A `tenure lock` in one says when it is ready and when it ends, which is true of itself alone.
#[test]
fn hooks_and_health_commands_do_not_speak_to_the_service_manager() {
    let sandbox = Sandbox::new("hooks-manager");
    let tell = "echo \"$0 [$NOTIFY_SOCKET]\" >> told";
    let options = [
        "--on-elected",
        tell,
        "--health-cmd",
        tell,
        "--health-every",
        "50ms",
    ];
    let script = "until [ -e told ] && [ $(wc -l < told) -ge 2 ]; do sleep 0.02; done";
    let job = ["job", "--", "sh", "-c", script];
    let mut command = sandbox.command(&[&["run"], &options[..], &job].concat());
    command.env("NOTIFY_SOCKET", sandbox.path("manager"));
    let ended = ended(command);
    assert_eq!(ended.code, 0, "{ended:?}");
    let told = sandbox.read("told");
    assert!(told.lines().all(|line| line == "sh []"), "{told}");
}

#[test]
fn what_hooks_and_health_commands_print_is_no_data() {
    let sandbox = Sandbox::new("hooks-output");
    let options = [
        "--ttl",
        UNHURRIED,
        "--on-elected",
        "echo hook 1",
        "--on-lost",
        "echo hook 2",
        "--health-cmd",
        "echo well; echo heard >&2; echo asked >> asked",
        "--health-every",
        "50ms",
    ];
    // When it is asked again all that it said the first time was passed on.
    let script = "until [ -e asked ] && [ $(wc -l < asked) -ge 2 ]; do sleep 0.02; done; echo data";
    let job = ["job", "--", "sh", "-c", script];
    let ended = sandbox.tenure(&[&["run"], &options[..], &job].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "data\n"), "{ended:?}");
    let mut lines: Vec<&str> = ended.stderr.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines, ["heard", "hook 1", "hook 2"]);
}
