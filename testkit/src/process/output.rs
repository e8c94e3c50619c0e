//! What a process wrote, line by line, as it writes it.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Which of its two streams a process wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// One line a process wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its place among all lines of the process, from 0, in the order they were read.
    pub index: usize,
    /// Where it was written.
    pub stream: Stream,
    /// Its text, without the line's end; bytes that are no UTF-8 are replaced.
    pub text: String,
}

#[derive(Default)]
struct Lines {
    read: Vec<Line>,
    open_streams: usize,
}

/// The lines read so far, shared with the threads that read.
#[derive(Clone, Default)]
pub(super) struct Output {
    lines: Arc<Mutex<Lines>>,
    changed: Arc<Condvar>,
}

impl Output {
    /// Reads a stream to its end on a thread of its own.
    pub(super) fn follow(&self, stream: Stream, source: impl Read + Send + 'static) {
        self.lock().open_streams += 1;
        let output = self.clone();
        std::thread::spawn(move || {
            let mut source = BufReader::new(source);
            let mut bytes = Vec::new();
            while source.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
                let text = String::from_utf8_lossy(&bytes)
                    .trim_end_matches(['\n', '\r'])
                    .to_owned();
                bytes.clear();
                let mut lines = output.lock();
                let index = lines.read.len();
                lines.read.push(Line { index, stream, text });
                output.changed.notify_all();
            }
            output.lock().open_streams -= 1;
            output.changed.notify_all();
        });
    }

    pub(super) fn all(&self) -> Vec<Line> {
        self.lock().read.clone()
    }

    /// The first line from `index` on that contains `pattern`; nothing when `deadline` passes or the streams
    /// end.
    pub(super) fn find(&self, index: usize, pattern: &str, deadline: Instant) -> Option<Line> {
        let mut lines = self.lock();
        loop {
            let found = lines
                .read
                .iter()
                .skip(index)
                .find(|line| line.text.contains(pattern));
            if let Some(line) = found {
                return Some(line.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || lines.open_streams == 0 {
                return None;
            }
            lines = self
                .changed
                .wait_timeout(lines, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits until both streams ended, or `deadline` passed.
    pub(super) fn wait_for_end(&self, deadline: Instant) {
        let mut lines = self.lock();
        while lines.open_streams > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            lines = self
                .changed
                .wait_timeout(lines, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
