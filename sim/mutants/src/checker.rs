//! One run of one checker over the copy, as a process of its own: whatever it does, this one goes on.

use crate::{Checker, Error, SWITCH};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How `tenure-sim` ends when it has found a violation.
pub const VIOLATION_EXIT_CODE: i32 = 3;

/// How many terms the simulator is asked for: more than it manages in any sensible limit, so that the limit
/// counts.
const TERMS: &str = "1000000000";

/// How many of its last lines a checker is judged by.
const LINES_KEPT: usize = 200;

/// How often the child is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a checker said of the copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Checked {
    /// It looked at all there was, and found nothing.
    Clean,
    /// It found nothing in the time that it had.
    TimeUp,
    /// It found a violation.
    Violation {
        /// The invariant's name.
        invariant: String,
        /// What it said about it, on the same line.
        detail: String,
    },
    /// It ended in another way: that says nothing.
    Failed {
        /// How, and its last words.
        why: String,
    },
}

/// Runs one checker with the bug of this number switched on (0: none), for at most `limit`; says what it
/// found and how long it took.
///
/// # Errors
/// [`Error::System`] if the program cannot be started.
pub fn check(
    program: &Path,
    folder: &Path,
    checker: Checker,
    switched_on: usize,
    limit: Duration,
) -> Result<(Checked, Duration), Error> {
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(arguments(checker))
        .current_dir(folder)
        .env(SWITCH, switched_on.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Error::system(program, &error))?;
    let said = child.stdout.take().map(last_lines);
    let complained = child.stderr.take().map(last_lines);
    let ended = wait(&mut child, began, limit).map_err(|error| Error::system(program, &error))?;
    let seconds = began.elapsed();
    let (said, complained) = (joined(said), joined(complained));
    let checked = match ended {
        None => Checked::TimeUp,
        Some(code) => judge(code, &said, &complained),
    };
    Ok((checked, seconds))
}

fn arguments(checker: Checker) -> &'static [&'static str] {
    match checker {
        Checker::Simulator => &["sim", "--terms", TERMS, "--threads", "1"],
        Checker::Model => &["model", "--quick"],
    }
}

/// Waits until the child has ended, or ends it at the limit (`None`). `Some(None)`: ended by a signal.
pub(crate) fn wait(
    child: &mut Child,
    began: Instant,
    limit: Duration,
) -> std::io::Result<Option<Option<i32>>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code()));
        }
        if began.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn judge(code: Option<i32>, said: &[String], complained: &[String]) -> Checked {
    let violation = said.iter().rev().find_map(|line| {
        let (invariant, detail) = line.strip_prefix("violation: ")?.split_once(": ")?;
        Some((invariant.to_owned(), detail.to_owned()))
    });
    match (code, violation) {
        (Some(0), _) => Checked::Clean,
        (Some(VIOLATION_EXIT_CODE), Some((invariant, detail))) => Checked::Violation { invariant, detail },
        (Some(VIOLATION_EXIT_CODE), None) => Checked::Failed {
            why: "it reports a violation, and no line \"violation: <invariant>: …\" names it".to_owned(),
        },
        (code, _) => {
            let ended = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
            let last = complained.iter().rev().find(|line| !line.trim().is_empty());
            Checked::Failed {
                why: format!("{ended}: {}", last.map_or("it said nothing", String::as_str)),
            }
        }
    }
}

/// Reads to the end, so that the child never waits for us, and keeps the last lines.
pub(crate) fn last_lines(stream: impl Read + Send + 'static) -> JoinHandle<VecDeque<String>> {
    thread::spawn(move || {
        let mut kept = VecDeque::with_capacity(LINES_KEPT);
        for line in BufReader::new(stream).split(b'\n') {
            let Ok(line) = line else { break };
            if kept.len() == LINES_KEPT {
                kept.pop_front();
            }
            kept.push_back(String::from_utf8_lossy(&line).into_owned());
        }
        kept
    })
}

pub(crate) fn joined(reader: Option<JoinHandle<VecDeque<String>>>) -> Vec<String> {
    reader
        .and_then(|reader| reader.join().ok())
        .map_or_else(Vec::new, Vec::from)
}
