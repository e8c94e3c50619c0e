//! A shell at a terminal, and what is typed there.

use super::{SOON, Sandbox};
use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use tenure_testkit::eventually;

pub const CTRL_C: &str = "\u{3}";
pub const CTRL_Z: &str = "\u{1a}";

/// In a script: waits until this process's group, the fifth field, is the one in the foreground of its
/// terminal, the eighth. A command is lent the terminal a moment after it has started.
pub const UNTIL_FOREGROUND: &str = "until set -- $(cat /proc/$$/stat) && [ $5 = $8 ]; do sleep 0.05; done";

/// A shell with job control, at a terminal that `script` makes.
pub struct Shell<'a> {
    sandbox: &'a Sandbox,
    script: Child,
}

impl<'a> Shell<'a> {
    pub fn start(sandbox: &'a Sandbox) -> Self {
        let tenure = sandbox.command(&[]);
        let mut script = Command::new("script");
        for (variable, value) in tenure.get_envs() {
            match value {
                Some(value) => script.env(variable, value),
                None => script.env_remove(variable),
            };
        }
        script
            .args(["--quiet", "--flush", "--command"])
            .args(["exec bash --norc --noprofile --noediting -i", "/dev/null"])
            .env("tenure", tenure.get_program())
            .current_dir(sandbox.dir.path())
            .stdin(Stdio::piped())
            .stdout(File::create(sandbox.dir.join("screen")).unwrap());
        let script = script.spawn().unwrap();
        Self { sandbox, script }
    }

    /// Types it, as a hand does.
    pub fn press(&mut self, keys: &str) {
        let keyboard = self.script.stdin.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line.
    pub fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    pub fn until_shows(&self, text: &str) {
        eventually(SOON, text, || self.sandbox.read("screen").contains(text));
    }
}

impl Drop for Shell<'_> {
    fn drop(&mut self) {
        // Its terminal goes with it, and the hang-up ends whoever is left there.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// Writes scripts into the folder: a name, and what it does.
pub fn scripts(sandbox: &Sandbox, scripts: &[(&str, &str)]) {
    for (name, text) in scripts {
        sandbox.script(name, &format!("#!/bin/sh\n{text}\n"));
    }
}
