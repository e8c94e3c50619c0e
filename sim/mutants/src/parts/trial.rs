//! One run of some tests of a part, as processes of their own: whatever they do, this one goes on.

use crate::Error;
use crate::checker::{joined, last_lines, wait};
use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How many tests run at a time for each core, unless `RUST_TEST_THREADS` says it: they wait more than they
/// work.
const TESTS_FOR_EACH_CORE: usize = 4;

/// How a program of tests ends of which one has failed.
pub(super) const FAILED_EXIT_CODE: i32 = 101;

/// What the tests said, and how they ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ran {
    /// `None`: they were ended at the limit. `Some(None)`: by a signal.
    pub(super) code: Option<Option<i32>>,
    /// What was said on standard output.
    pub(super) said: String,
    /// The last line on standard error.
    pub(super) complained: String,
    pub(super) took: Duration,
}

/// The names of all tests of a program.
pub(super) fn list(program: &Path, folder: &Path) -> Result<Vec<String>, Error> {
    let output = Command::new(program)
        .args(["--list", "--format", "terse"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::system(program, &error))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

/// Runs these tests of each program, one program after the other, for at most `limit` in all. Servers that
/// they start end with them.
///
/// `installed`: the target folder in which the servers are installed.
pub(super) fn run(
    programs: &[(&Path, &[String])],
    folder: &Path,
    installed: &Path,
    limit: Duration,
) -> Result<Ran, Error> {
    let mut all = Ran {
        code: Some(Some(0)),
        said: String::new(),
        complained: String::new(),
        took: Duration::ZERO,
    };
    // With no test named, a program would run all.
    for (program, tests) in programs.iter().filter(|(_, tests)| !tests.is_empty()) {
        let left = limit.saturating_sub(all.took);
        all = all.and(run_one(program, folder, installed, tests, left)?);
    }
    Ok(all)
}

impl Ran {
    /// This run and the next, as one: how it ended is how the worse of them did.
    fn and(self, next: Self) -> Self {
        let badness = |code: Option<Option<i32>>| match code {
            Some(Some(0)) => 0,
            Some(Some(FAILED_EXIT_CODE)) => 1,
            Some(_) => 2,
            None => 3,
        };
        let is_worse = badness(next.code) > badness(self.code);
        Self {
            code: if is_worse { next.code } else { self.code },
            said: self.said + &next.said,
            complained: if is_worse {
                next.complained
            } else {
                self.complained
            },
            took: self.took + next.took,
        }
    }
}

fn run_one(
    program: &Path,
    folder: &Path,
    installed: &Path,
    tests: &[String],
    limit: Duration,
) -> Result<Ran, Error> {
    let at_once = match std::env::var("RUST_TEST_THREADS") {
        Ok(told) => told,
        Err(_) => {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            (cores * TESTS_FOR_EACH_CORE).to_string()
        }
    };
    let began = Instant::now();
    let mut child = Command::new(program)
        .arg("--exact")
        .args(tests)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", installed)
        .env("RUST_TEST_THREADS", at_once)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Error::system(program, &error))?;
    let said = child.stdout.take().map(|mut stream| {
        thread::spawn(move || {
            let mut said = Vec::new();
            // What was read before an error is judged.
            drop(stream.read_to_end(&mut said));
            String::from_utf8_lossy(&said).into_owned()
        })
    });
    let complained = child.stderr.take().map(last_lines);
    let code = wait(&mut child, began, limit).map_err(|error| Error::system(program, &error))?;
    let took = began.elapsed();
    let said = said.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let complained = joined(complained);
    Ok(Ran {
        code,
        said,
        complained: complained
            .into_iter()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default(),
        took,
    })
}
