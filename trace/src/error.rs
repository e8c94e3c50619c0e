use crate::{FORMAT, LINE_BYTES_MAX, TRACE_BYTES_MAX};
use std::fmt;
use tenure_core::Moment;

/// A trace that cannot be read, and where.
///
/// Effect on authority: none; a trace is read after the fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The line, counted from 1; 0 if the file could not be opened.
    pub line: u64,
    /// What is wrong with it.
    pub fault: TraceFault,
}

/// What is wrong with a line of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceFault {
    /// It could not be read from the disk; holds the reason.
    Unreadable(String),
    /// There is no header: the file is empty, or ends within its first line.
    Empty,
    /// The header tells of another version of the format.
    Format {
        /// The version found.
        found: u64,
    },
    /// It is no JSON in UTF-8; holds the reason.
    NotJson(String),
    /// It is JSON, but a part is missing, unknown, of the wrong type or out of range; holds where and what.
    Wrong(String),
    /// It has the right parts, but not byte for byte as Tenure writes them.
    Rewritten,
    /// It is longer than [`LINE_BYTES_MAX`].
    LineTooLong,
    /// The trace is longer than [`TRACE_BYTES_MAX`].
    TraceTooLong,
    /// Its moment is before that of the line before.
    TimeWentBack {
        /// The moment of the line before.
        from: Moment,
        /// Its own.
        to: Moment,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        match &self.fault {
            TraceFault::Unreadable(why) => write!(f, "cannot be read: {why}"),
            TraceFault::Empty => f.write_str(
                "ends before its header does, so nothing can be replayed; was it recorded by `tenure run --trace`?",
            ),
            TraceFault::Format { found } => write!(
                f,
                "the trace has format {found}, this is a reader of {FORMAT}; replay it with the version that wrote it"
            ),
            TraceFault::NotJson(why) => {
                write!(f, "no JSON ({why}); is this a trace, and whole? The lines before it are sound")
            }
            TraceFault::Wrong(what) => write!(f, "{what}; was it edited, or written by another version?"),
            TraceFault::Rewritten => f.write_str(
                "not as Tenure writes it (a field twice, in another order, or spaces); take the file as it was recorded",
            ),
            TraceFault::LineTooLong => {
                write!(f, "longer than {LINE_BYTES_MAX} bytes, which no line of a trace is; is this a trace?")
            }
            TraceFault::TraceTooLong => write!(
                f,
                "the trace is longer than {TRACE_BYTES_MAX} bytes; cut it before this line: a beginning replays, too"
            ),
            TraceFault::TimeWentBack { from, to } => write!(
                f,
                "time goes back from {from:?} to {to:?}, which an engine never sees; are lines swapped?"
            ),
        }
    }
}

impl std::error::Error for TraceError {}
