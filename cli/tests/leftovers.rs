//! What the command leaves behind, or has beside its group, when it ends: it gets to clean up, and is named.

use crate::common::{Sandbox, UNHURRIED, ended, exit_code, json, signal};
use rustix::process::Signal;

/// As `timeout` and `setsid` make one: SIGTERM to `tenure` reaches it at once, SIGINT for the group is
/// followed by SIGTERM for it.
#[test]
fn what_is_beside_the_commands_group_gets_to_clean_up_after_a_signal() {
    for (number, then, code) in [
        (Signal::TERM, "while [ ! -s how ]; do sleep 0.02; done; exit 7", 7),
        (Signal::INT, "exec sleep 300", 130),
    ] {
        let sandbox = Sandbox::new("beside");
        let beside =
            "trap \"echo cleaned > how; exit\" TERM; echo ready > ready; while :; do sleep 0.02; done";
        let script = format!("trap : TERM; setsid sh -c '{beside}' & {then}");
        let process = sandbox.run(&["--ttl", "1h", "--grace", "10m"], "job", &script);
        sandbox.line("ready");
        signal(process.pid(), number);
        assert_eq!(exit_code(&process), code);
        assert_eq!(sandbox.read("how"), "cleaned\n");
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}

/// Tries of an end that is to be noted.
const TRIES_MAX: u32 = 4;

/// It is killed before it is done, and the code is the command's: nobody would know.
#[test]
fn work_that_is_left_in_the_background_is_named_and_counted() {
    let sandbox = Sandbox::new("background");
    let asleep = "sleep 300 & echo $! > pid; while [ $(cat /proc/$!/comm) != sleep ]; do sleep 0.02; done";
    let run = ["run", "--ttl", UNHURRIED, "job", "--"];
    // A note that the store takes longer than a second for is left out, as on a busy disk.
    let is_noted = (0..TRIES_MAX).any(|_| {
        let told = sandbox.tenure(&[&run[..], &["sh", "-c", &format!("{asleep}; exit 3")]].concat());
        let said = format!("left 1 process (pid {} sleep)", sandbox.pid("pid"));
        assert_eq!((told.code, told.stderr.lines().count()), (3, 1), "{told:?}");
        assert!(
            told.stderr.contains(&said) && told.stderr.contains("lease \"job\": sh ended"),
            "{told:?}"
        );
        let history = sandbox.tenure(&["history", "job"]).stdout;
        let in_json = json(&sandbox.tenure(&["history", "job", "--output", "json"]).stdout);
        history.contains("ended with exit status: 3, and 1 process with it")
            && in_json["terms"][0]["left"] == 1
    });
    assert!(is_noted, "{}", sandbox.tenure(&["history", "job"]).stdout);
    // `setsid` forks, as the command leads a group.
    let forked = sandbox.tenure(&["run", "job", "--", "setsid", "sleep", "300"]);
    assert_eq!(forked.code, 0, "{forked:?}");
    assert!(forked.stderr.contains("left 1 process"), "{forked:?}");
    let many = sandbox.tenure(&[
        "run",
        "--output",
        "json",
        "--ttl",
        UNHURRIED,
        "job",
        "--",
        "sh",
        "-c",
        "for i in 1 2 3 4 5; do sleep 300 & done",
    ]);
    assert_eq!(json(&many.stderr)["left"], 5, "{many:?}");
    let none = sandbox.tenure(&[&run[..], &["sh", "-c", "sleep 0.1; exit 3"]].concat());
    assert_eq!((none.code, none.stderr.as_str()), (3, ""), "{none:?}");
}

/// Its warden ends before it: no false alarm. Many at once, as what comes last is a matter of chance.
#[test]
fn a_tenure_that_is_the_work_leaves_nothing_behind() {
    let run = |sandbox: &Sandbox, job: &str| {
        let inner = [
            env!("CARGO_BIN_EXE_tenure"),
            "run",
            &format!("{job}/inner"),
            "--",
            "true",
        ];
        let mut command = sandbox.command(&[&["run", job, "--"], &inner[..]].concat());
        command.env("TENURE_TTL", UNHURRIED);
        let ended = ended(command);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    };
    std::thread::scope(|scope| {
        for job in ["one", "two", "three", "four", "five", "six"] {
            scope.spawn(move || {
                // A file of its own: those who wait for another's write for too long say so.
                let sandbox = Sandbox::new("nested-leftovers");
                (0..10).for_each(|_| run(&sandbox, job));
            });
        }
    });
}
