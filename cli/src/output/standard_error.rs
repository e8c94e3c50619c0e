//! Standard error. Once something is held it is written by a thread of its own: whoever does not read it, as
//! a terminal after Ctrl-S, holds up nothing but lines.

use super::voice::line_of;
use super::whole::write_whole;
use crate::arguments::Form;
use crate::exit::{Code, Failure};
use serde_json::json;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How many lines may wait to be written; what comes then is dropped, and counted.
const LINES_MAX: usize = 4096;

/// How long the end of this process waits for lines that were not written yet.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// The lines of a process that holds something.
static LINES: OnceLock<Lines> = OnceLock::new();

/// From here on nobody who writes to standard error waits for its reader. When signals are taken in, so that
/// the thread is stopped by none, and before anything is held.
///
/// # Errors
/// No file descriptor or thread is left.
pub(crate) fn write_aside(form: Form) -> Result<(), Failure> {
    let failed = |error| Failure::new(Code::Internal, format!("cannot write aside: {error}"));
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
    let lines = || LINES.get_or_init(Lines::default);
    std::thread::Builder::new()
        .name("tenure messages".to_owned())
        .spawn(move || lines().write_on(File::from(output), form))
        .map_err(failed)?;
    // Not before there is a thread: what is said without one, as why there is none, would never be written.
    lines();
    Ok(())
}

/// Waits for what was not written yet, but not for long: at the end.
pub(crate) fn flush() {
    if let Some(lines) = LINES.get() {
        lines.flush(FLUSH_TIME_MAX);
    }
}

/// Standard error, for whole lines.
pub(crate) struct StandardError;

impl Write for StandardError {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match LINES.get() {
            Some(lines) => lines.put(line),
            None => write_whole(&mut io::stderr().lock(), line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines on their way.
#[derive(Default)]
struct Lines {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    dropped: u64,
    is_writing: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.dropped == 0
    }
}

impl Lines {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, line: &[u8]) {
        let mut state = self.state();
        if state.waiting.len() < LINES_MAX {
            state.waiting.push_back(line.to_owned());
        } else {
            state.dropped += 1;
        }
        self.changed.notify_all();
    }

    /// The next one; when all were written, how many were not.
    fn next(&self, form: Form) -> Vec<u8> {
        let mut state = self.state();
        state.is_writing = false;
        self.changed.notify_all();
        let waited = self.changed.wait_while(state, |state| state.is_idle());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_writing = true;
        state.waiting.pop_front().unwrap_or_else(|| {
            let dropped = std::mem::take(&mut state.dropped);
            let text = format!("{dropped} lines were dropped: standard error was not read");
            line_of(form, "lines_dropped", &text, json!({"dropped": dropped})).into_bytes()
        })
    }

    fn write_on(&self, mut output: impl Write + AsFd, form: Form) {
        loop {
            // Where it fails there is nobody to tell it to.
            let _ = write_whole(&mut output, &self.next(form));
        }
    }

    fn flush(&self, time_max: Duration) {
        let unwritten = |state: &mut State| state.is_writing || !state.is_idle();
        let _ = self.changed.wait_timeout_while(self.state(), time_max, unwritten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixStream;

    #[test]
    fn lines_that_nobody_reads_hold_nobody_up_and_are_counted() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let lines: &'static Lines = Box::leak(Box::default());
        std::thread::spawn(move || lines.write_on(theirs, Form::Text));
        let line = format!("{}\n", "x".repeat(1000));
        let many = 3 * LINES_MAX;
        (0..many).for_each(|_| lines.put(line.as_bytes()));
        lines.flush(Duration::from_millis(1));
        let mut read = 0_usize;
        for text in BufReader::new(ours).lines().map(Result::unwrap) {
            if let Some(told) = text.strip_prefix("tenure: ") {
                let dropped = many - read;
                assert!(dropped > 0, "{told}");
                assert_eq!(
                    told,
                    format!("{dropped} lines were dropped: standard error was not read")
                );
                break;
            }
            assert_eq!(text.len(), 1000);
            read += 1;
        }
        assert!(read >= LINES_MAX);
    }

    /// Somebody else has made the file such a one, as a shell's other end does that is written for events.
    #[test]
    fn an_output_that_makes_nobody_wait_gets_all_lines_whole() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let lines: &'static Lines = Box::leak(Box::default());
        std::thread::spawn(move || lines.write_on(theirs, Form::Text));
        let line = format!("{}\n", "x".repeat(9999));
        (0..1000).for_each(|_| lines.put(line.as_bytes()));
        // Nobody has read yet.
        lines.flush(Duration::from_millis(100));
        let mut texts = BufReader::new(ours).lines();
        for number in 0..1000 {
            let text = texts.next().unwrap();
            let text = text.unwrap_or_else(|error| panic!("line {number}: {error}"));
            assert_eq!(text.len(), 9999, "line {number}");
        }
    }
}
