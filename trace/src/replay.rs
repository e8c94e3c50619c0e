use crate::form::Form;
use crate::{Reader, TraceError};
use std::fmt;
use std::io::Read;
use tenure_core::Actions;

/// What came of replaying a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// How many steps the engine repeated exactly.
    pub steps: u64,
    /// Whether that was all of them.
    pub verdict: Verdict,
    /// The number of the last line, if it was cut off and therefore not replayed.
    pub truncated: Option<u64>,
}

/// Whether a replay did what was recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every request, event and wake is the same.
    Same,
    /// The engine did something else; holds the first difference.
    Different(Box<Difference>),
}

/// Where a replay first did something else than was recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line of the trace.
    pub line: u64,
    /// Which part of it.
    pub part: Part,
    /// What the trace says, as JSON.
    pub expected: String,
    /// What the engine did, as JSON.
    pub got: String,
}

/// A part of what an engine wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The requests to the store.
    Requests,
    /// The events.
    Events,
    /// When to wake.
    Wake,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Events => "events",
            Self::Wake => "wake",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            part,
            expected,
            got,
        } = self;
        write!(
            f,
            "line {line}: the {part} differ: expected {expected}, got {got}"
        )
    }
}

/// Replays a trace: a fresh engine from its header, the same moments and inputs, everything it wants
/// compared.
///
/// # Errors
/// [`TraceError`] at the first line that cannot be read.
pub fn replay<R: Read>(reader: &mut Reader<R>) -> Result<Replayed, TraceError> {
    let mut engine = reader.header().engine();
    let mut steps = 0;
    while let Some(step) = reader.next() {
        let step = step?;
        let got = engine.step(step.at, step.input);
        if let Some(difference) = difference(reader.line(), &step.actions, &got) {
            return Ok(Replayed {
                steps,
                verdict: Verdict::Different(Box::new(difference)),
                truncated: None,
            });
        }
        steps += 1;
    }
    Ok(Replayed {
        steps,
        verdict: Verdict::Same,
        truncated: reader.truncated(),
    })
}

fn difference(line: u64, expected: &Actions, got: &Actions) -> Option<Difference> {
    let differ = |part, expected: &dyn Form, got: &dyn Form| Difference {
        line,
        part,
        expected: text(expected),
        got: text(got),
    };
    if expected.requests != got.requests {
        Some(differ(Part::Requests, &expected.requests, &got.requests))
    } else if expected.events != got.events {
        Some(differ(Part::Events, &expected.events, &got.events))
    } else if expected.wake != got.wake {
        Some(differ(Part::Wake, &expected.wake, &got.wake))
    } else {
        None
    }
}

fn text(form: &dyn Form) -> String {
    let mut out = String::new();
    form.write(&mut out);
    out
}
