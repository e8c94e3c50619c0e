use crate::form::{Form, Wrong};
use crate::{FORMAT, Header, LINE_BYTES_MAX, Step, TRACE_BYTES_MAX, TraceError, TraceFault};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use tenure_core::Moment;

/// Reads a trace, strictly: what it accepts, a [`Writer`](crate::Writer) writes byte for byte.
///
/// An iterator over the steps. It ends at the first error, and at a last line that was cut off, since a
/// killed process leaves one: see [`truncated`](Self::truncated). Memory: one line.
#[derive(Debug)]
pub struct Reader<R> {
    input: BufReader<R>,
    header: Header,
    line: u64,
    bytes: u64,
    last: Moment,
    truncated: Option<u64>,
    over: bool,
}

/// A line that was read.
enum Line {
    Whole(String),
    /// The input ended within it.
    CutOff,
    /// There is none.
    End,
}

impl<R: Read> Reader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// [`TraceError`] in line 1.
    pub fn new(input: R) -> Result<Self, TraceError> {
        let mut input = BufReader::new(input);
        let fail = |fault| TraceError { line: 1, fault };
        let text = match next_line(&mut input).map_err(fail)? {
            Line::Whole(text) => text,
            Line::CutOff | Line::End => return Err(fail(TraceFault::Empty)),
        };
        let header: Header = parse(&text, check_format).map_err(fail)?;
        Ok(Self {
            input,
            header,
            line: 1,
            bytes: text.len() as u64 + 1,
            last: Moment::ZERO,
            truncated: None,
            over: false,
        })
    }

    /// What the trace is of.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The number of the line that was read last, counted from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The number of the last line, if it was cut off. All before it is sound. Known once the iterator ended.
    #[must_use]
    pub fn truncated(&self) -> Option<u64> {
        self.truncated
    }

    fn step(&mut self) -> Result<Option<Step>, TraceFault> {
        let text = match next_line(&mut self.input)? {
            Line::Whole(text) => text,
            Line::CutOff => {
                self.truncated = Some(self.line);
                return Ok(None);
            }
            Line::End => return Ok(None),
        };
        self.bytes += text.len() as u64 + 1;
        if self.bytes > TRACE_BYTES_MAX {
            return Err(TraceFault::TraceTooLong);
        }
        let step: Step = parse(&text, |_| Ok(()))?;
        if step.at < self.last {
            return Err(TraceFault::TimeWentBack {
                from: self.last,
                to: step.at,
            });
        }
        self.last = step.at;
        Ok(Some(step))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Step, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        self.line += 1;
        let outcome = self.step().map_err(|fault| TraceError {
            line: self.line,
            fault,
        });
        self.over = !matches!(outcome, Ok(Some(_)));
        outcome.transpose()
    }
}

/// One line without its end, never more than the longest of them in memory.
fn next_line(input: &mut impl BufRead) -> Result<Line, TraceFault> {
    let mut bytes = Vec::new();
    let limit = LINE_BYTES_MAX as u64;
    input
        .take(limit)
        .read_until(b'\n', &mut bytes)
        .map_err(|error| TraceFault::Unreadable(error.to_string()))?;
    if bytes.pop_if(|last| *last == b'\n').is_some() {
        let text =
            String::from_utf8(bytes).map_err(|error| TraceFault::NotJson(error.utf8_error().to_string()))?;
        return Ok(Line::Whole(text));
    }
    if bytes.len() as u64 == limit {
        return Err(TraceFault::LineTooLong);
    }
    Ok(if bytes.is_empty() { Line::End } else { Line::CutOff })
}

fn parse<T: Form>(text: &str, first: impl FnOnce(&Value) -> Result<(), TraceFault>) -> Result<T, TraceFault> {
    let value: Value = serde_json::from_str(text).map_err(|error| TraceFault::NotJson(error.to_string()))?;
    first(&value)?;
    let read = T::read(&value).map_err(|wrong: Wrong| TraceFault::Wrong(wrong.told()))?;
    let mut written = String::with_capacity(text.len());
    read.write(&mut written);
    if written == text {
        Ok(read)
    } else {
        Err(TraceFault::Rewritten)
    }
}

/// Another format may have other fields: its number comes first.
fn check_format(header: &Value) -> Result<(), TraceFault> {
    match header.get("tenure_trace").and_then(Value::as_u64) {
        Some(FORMAT) => Ok(()),
        Some(found) => Err(TraceFault::Format { found }),
        None => Err(TraceFault::Wrong(
            "no header: the field \"tenure_trace\" with the number of the format is missing".to_owned(),
        )),
    }
}
