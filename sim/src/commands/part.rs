//! A proof that is a program of its own: run it, show its progress, keep the line in which it sums up.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where the debug builds of other programs are found.
#[derive(Clone, Debug)]
pub(crate) enum DebugBuilds {
    /// Cargo builds them first.
    Made,
    /// In this folder, built already: the tests of a workspace leave every program behind.
    Found(PathBuf),
}

impl DebugBuilds {
    /// Runs the debug build of `package`, whose program has the same name. As [`run`].
    ///
    /// Not a release build: the drivers that the tests have built would be built once more, and an overflow
    /// would pass unseen.
    pub(crate) fn run(&self, begins: &str, package: &str, arguments: &[&str]) -> Summary {
        match self {
            Self::Made => {
                let cargo = ["run", "--locked", "-q", "-p", package, "--"];
                run(begins, "cargo", &[&cargo[..], arguments].concat())
            }
            Self::Found(folder) => run(begins, &in_folder(folder, package), arguments),
        }
    }
}

/// A path that stays what it is wherever a program is started.
fn in_folder(folder: &Path, program: &str) -> String {
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    path.join(program).to_string_lossy().into_owned()
}

/// What a part said last, and how long it took.
pub(crate) struct Summary {
    /// The line in which it sums up; what went wrong if there is none.
    pub(crate) line: String,
    pub(crate) succeeded: bool,
    pub(crate) seconds: f64,
}

/// Runs `program` in the root of the repository. Its standard error, the progress, is passed on.
///
/// `begins` is how the summing-up line begins; it is left away.
pub(crate) fn run(begins: &str, program: &str, arguments: &[&str]) -> Summary {
    let began = Instant::now();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .stderr(Stdio::inherit())
        .output();
    let seconds = began.elapsed().as_secs_f64();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            return Summary {
                line: format!("`{program}` did not start: {error}"),
                succeeded: false,
                seconds,
            };
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rev().find_map(|line| line.strip_prefix(begins));
    if !output.status.success() || line.is_none() {
        // What it found is in what it said.
        eprint!("{text}");
    }
    Summary {
        // A part that ends well without summing up has shown nothing.
        succeeded: output.status.success() && line.is_some(),
        line: line.map_or_else(
            || {
                format!(
                    "`{program} {}` ended with {} and no line \"{begins}…\"",
                    arguments.join(" "),
                    output.status
                )
            },
            ToOwned::to_owned,
        ),
        seconds,
    }
}
