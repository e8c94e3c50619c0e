//! A proof that is a program of its own: run it, show its progress, keep the line in which it sums up.

use std::process::{Command, Stdio};
use std::time::Instant;

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
