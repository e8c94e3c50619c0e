//! A key that interrupts at a terminal: whoever has started `tenure` hears of it as it does without `tenure`.

use crate::common::shell::{CTRL_C, Shell, UNTIL_FOREGROUND, scripts};
use crate::common::{Sandbox, exit_code};
use tenure_testkit::eventually;

const CTRL_BACKSLASH: &str = "\u{1c}";

/// Is ready when it has written to `runs`, and ends by any signal.
const WORK: &str = "echo run >> runs; exec sleep 100";

/// A script with two steps, the first by this `tenure run`; and work for it, which is ready when the keys are
/// its own.
fn two_steps(sandbox: &Sandbox, shell: &str, run: &str) {
    scripts(sandbox, &[("work", &format!("{UNTIL_FOREGROUND}\n{WORK}"))]);
    sandbox.script(
        "steps",
        &format!("#!/usr/bin/env {shell}\n{run}\necho yes > next\n"),
    );
}

/// The code of what the shell ran last.
fn code(sandbox: &Sandbox, shell: &mut Shell<'_>) -> String {
    shell.enter("echo $? > code");
    sandbox.line("code")
}

/// A shell goes on when its child ends by itself, and the key has hit the command's group alone.
#[test]
fn a_key_that_interrupts_the_command_ends_the_script_that_runs_tenure() {
    for (script_shell, key, expected) in [
        ("bash", CTRL_C, "130"),
        ("sh", CTRL_C, "130"),
        // Bash would go on whatever its child dies of: it ignores this one.
        ("sh", CTRL_BACKSLASH, "131"),
    ] {
        let sandbox = Sandbox::new("steps");
        two_steps(&sandbox, script_shell, "$tenure run job -- ./work");
        let mut shell = Shell::start(&sandbox);
        shell.enter("./steps");
        sandbox.line("runs");
        shell.press(key);
        assert_eq!(code(&sandbox, &mut shell), expected, "{script_shell}");
        assert!(
            !sandbox.dir.join("next").exists(),
            "{script_shell}: the next step ran"
        );
        assert_eq!(sandbox.lease("job")["state"], "vacant", "{script_shell}");
    }
}

#[test]
fn a_key_that_interrupts_the_command_lets_no_other_term_begin() {
    let sandbox = Sandbox::new("restarts");
    let again = "--restart always --cooldown 0s";
    two_steps(&sandbox, "bash", &format!("$tenure run {again} job -- ./work"));
    let mut shell = Shell::start(&sandbox);
    shell.enter("./steps");
    sandbox.line("runs");
    shell.press(CTRL_C);
    assert_eq!(code(&sandbox, &mut shell), "130");
    assert_eq!(sandbox.read("runs"), "run\n");
    assert!(!sandbox.dir.join("next").exists(), "the next step ran");
}

#[test]
fn a_key_that_interrupts_the_waiting_ends_the_script_that_runs_tenure() {
    let sandbox = Sandbox::new("waits");
    let holder = sandbox.run(&[], "job", "while [ ! -e go ]; do sleep 0.05; done");
    sandbox.until_held("job");
    two_steps(&sandbox, "bash", "$tenure run job -- ./work");
    let mut shell = Shell::start(&sandbox);
    shell.enter("./steps");
    shell.until_shows("waiting; held by");
    shell.press(CTRL_C);
    assert_eq!(code(&sandbox, &mut shell), "130");
    assert!(!sandbox.dir.join("next").exists(), "the next step ran");
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(exit_code(&holder), 0);
}

/// In a pipeline the key reaches all of it: a shell asks how the last of it has ended.
#[test]
fn a_key_that_interrupts_a_pipeline_ends_the_script_that_ends_it_with_tenure() {
    let sandbox = Sandbox::new("last");
    two_steps(&sandbox, "bash", "sleep 100 | $tenure run job -- ./part");
    // It is never lent the terminal.
    scripts(&sandbox, &[("part", WORK)]);
    let mut shell = Shell::start(&sandbox);
    shell.enter("./steps");
    sandbox.line("runs");
    shell.press(CTRL_C);
    assert_eq!(code(&sandbox, &mut shell), "130");
    assert!(!sandbox.dir.join("next").exists(), "the next step ran");
}

/// As without `tenure`: an editor takes Ctrl-C for itself.
#[test]
fn a_command_that_takes_the_key_for_itself_lets_the_script_go_on() {
    let sandbox = Sandbox::new("takes");
    let run = "$tenure run job -- ./takes; echo $? > was";
    two_steps(&sandbox, "bash", run);
    scripts(
        &sandbox,
        &[(
            "takes",
            &format!("{UNTIL_FOREGROUND}\ntrap 'exit 3' INT; echo run >> runs; while :; do sleep 0.05; done"),
        )],
    );
    let mut shell = Shell::start(&sandbox);
    shell.enter("./steps");
    sandbox.line("runs");
    shell.press(CTRL_C);
    assert_eq!(sandbox.line("was"), "3");
    eventually(crate::common::SOON, "the next step", || {
        sandbox.read("next") == "yes\n"
    });
}
