use crate::form::Form;
use crate::{Header, LINE_BYTES_MAX, TRACE_BYTES_MAX, step};
use std::io::{self, ErrorKind, Write};
use tenure_core::{Actions, Input, Moment};

/// Writes a trace: a header, then a line for each step.
///
/// Each line goes out in one write and is flushed, so that whatever ends the process, the file is a trace up
/// to there, but for a last line that may be cut off. A crash of the machine may cost more: nothing is
/// synced.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    written: u64,
    broken: bool,
}

/// The header as a line of a trace, its end included.
#[must_use]
pub fn header_line(header: &Header) -> String {
    line(|out| header.write(out))
}

/// A step as a line of a trace, its end included.
#[must_use]
pub fn step_line(at: Moment, input: &Input, actions: &Actions) -> String {
    line(|out| step::write(at, input, actions, out))
}

fn line(write: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    write(&mut out);
    out.push('\n');
    out
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// As [`write_line`](Self::write_line); [`ErrorKind::InvalidInput`] for a text that no reader takes.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        header
            .is_for_people()
            .map_err(|wrong| io::Error::new(ErrorKind::InvalidInput, wrong.told()))?;
        Self::with_line(out, &header_line(header))
    }

    /// Begins a trace with a line that [`header_line`] has made.
    ///
    /// # Errors
    /// As [`write_line`](Self::write_line).
    pub fn with_line(out: W, header: &str) -> io::Result<Self> {
        let mut writer = Self {
            out,
            written: 0,
            broken: false,
        };
        writer.write_line(header)?;
        Ok(writer)
    }

    /// Adds a step.
    ///
    /// # Errors
    /// As [`write_line`](Self::write_line).
    pub fn step(&mut self, at: Moment, input: &Input, actions: &Actions) -> io::Result<()> {
        self.write_line(&step_line(at, input, actions))
    }

    /// Adds a line that [`step_line`] has made.
    ///
    /// # Errors
    /// What the output says; [`ErrorKind::FileTooLarge`] at [`LINE_BYTES_MAX`] and [`TRACE_BYTES_MAX`]. After
    /// an error the trace is over, and every further line is refused: one that is missing would make all
    /// after it false.
    pub fn write_line(&mut self, line: &str) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::new(
                ErrorKind::BrokenPipe,
                "the trace has ended with an error before",
            ));
        }
        let written = self.written.saturating_add(line.len() as u64);
        let outcome = if line.len() > LINE_BYTES_MAX {
            Err(too_large(format!(
                "a line would be longer than {LINE_BYTES_MAX} bytes"
            )))
        } else if written > TRACE_BYTES_MAX {
            Err(too_large(format!(
                "it would be longer than {TRACE_BYTES_MAX} bytes"
            )))
        } else {
            self.out
                .write_all(line.as_bytes())
                .and_then(|()| self.out.flush())
        };
        self.broken = outcome.is_err();
        self.written = written;
        outcome
    }

    /// The output.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn too_large(why: String) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, why)
}
