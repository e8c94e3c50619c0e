//! `tenure top` on a real terminal, which `script` makes.

use crate::common::{SOON, Sandbox, ended, signal};
use rustix::process::Signal;
use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use tenure_testkit::eventually;

/// Leaves the screen that programs draw on.
const SCREEN_LEFT: &str = "\u{1b}[?1049l";

const ROWS: u16 = 30;
const COLUMNS: u16 = 140;

struct Top<'a> {
    sandbox: &'a Sandbox,
    script: Child,
}

impl<'a> Top<'a> {
    fn start(sandbox: &'a Sandbox) -> Self {
        let top = sandbox.command(&["top", "--every", "50ms"]);
        let mut script = Command::new("script");
        let command = format!(
            "stty rows {ROWS} columns {COLUMNS}; echo $$ > {}; exec {} top --every 50ms",
            sandbox.path("pid"),
            top.get_program().display()
        );
        script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
        script.env("TERM", "xterm");
        for (variable, value) in top.get_envs() {
            match value {
                Some(value) => script.env(variable, value),
                None => script.env_remove(variable),
            };
        }
        script
            .stdin(Stdio::piped())
            .stdout(File::create(sandbox.dir.join("screen")).unwrap());
        let script = script.spawn().unwrap();
        Self { sandbox, script }
    }

    /// What was written to the terminal.
    fn written(&self) -> Vec<u8> {
        std::fs::read(self.sandbox.dir.join("screen")).unwrap()
    }

    fn has_left(&self) -> bool {
        String::from_utf8_lossy(&self.written()).contains(SCREEN_LEFT)
    }

    /// Whether the terminal shows this by now.
    fn shows(&self, text: &str) -> bool {
        let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
        terminal.process(&self.written());
        terminal.screen().contents().contains(text)
    }

    fn until_shows(&self, text: &str) {
        eventually(SOON, text, || self.shows(text));
    }
}

impl Drop for Top<'_> {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
fn top_shows_who_leads_who_waits_and_what_changes_and_leaves_the_terminal_as_it_was() {
    let sandbox = Sandbox::new("top");
    let first = sandbox.run(&["--candidate", "host-1", "--priority", "1"], "job", "sleep 300");
    sandbox.until_held("job");
    let _second = sandbox.run(&["--candidate", "host-2", "--priority", "7"], "job", "sleep 300");
    eventually(SOON, "its place", || {
        sandbox.lease("job/candidates/7/host-2")["state"] == "held"
    });
    let mut top = Top::start(&sandbox);
    for shown in ["1 lease, 1 held", "host-1", "host-2  priority 7"] {
        top.until_shows(shown);
    }
    first.terminate();
    top.until_shows("leads by token");
    assert!(!top.has_left());
    top.script.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    assert!(top.script.wait().unwrap().success());
    assert!(top.has_left());
}

/// Else the shell that comes after it would echo nothing, on a screen that is not its own.
#[test]
fn a_signal_that_ends_top_leaves_the_terminal_as_it_was() {
    for (ending, code) in [
        (Signal::TERM, 143),
        (Signal::INT, 130),
        (Signal::QUIT, 131),
        (Signal::HUP, 129),
    ] {
        let sandbox = Sandbox::new("top-signal");
        let mut top = Top::start(&sandbox);
        top.until_shows("0 leases");
        signal(sandbox.pid("pid"), ending);
        let ended = eventually(SOON, "it ends", || top.script.try_wait().unwrap());
        assert_eq!(ended.code(), Some(code), "{ending:?}");
        assert!(top.has_left(), "{ending:?}");
    }
}

#[test]
fn top_without_a_terminal_says_what_there_is_for_programs() {
    let sandbox = Sandbox::new("top-nowhere");
    let told = ended(sandbox.command(&["top"]));
    assert!(
        told.code == 2 && told.stderr.contains("top needs a terminal"),
        "{told:?}"
    );
}
