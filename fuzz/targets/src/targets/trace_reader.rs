//! The reader of traces, and everything that a trace is put to: any bytes, and real traces with damage.

use super::choices::Choices;
use super::engine::Life;
use super::text::assert_one_line;
use crate::Target;
use std::io::{self, Read};
use tenure_trace::{
    Breach, Header, LINE_BYTES_MAX, Reader, Rule, TraceFault, Verdict, check, header_line, merge, narrate,
    replay, step_line,
};

/// This target.
pub const TARGET: Target = Target {
    name: "trace_reader",
    promise: "an accepted line is written back as it was, a refused one is told in one line, a real trace replays",
    judge,
    dictionary: &[
        "\"at\":",
        "\"input\":",
        "\"requests\":",
        "\"events\":",
        "\"wake\":",
        "\"tenure_trace\":1",
        "null",
        "{}",
        "[]",
        "[[[[",
        "\\u0000",
        "1e999",
        "-0",
        "18446744073709551616",
        "\n",
        "\"tick\"",
        "\"answer\"",
        "\"command\"",
    ],
};

/// Most steps of a recorded life: reading is what is judged here, and every kind of line comes in few.
const STEPS_MAX: usize = 16;

/// Most bytes that a reader may take beyond a line that is too long: its buffer, and one more.
const READ_AHEAD_MAX: usize = 64 * 1024;

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    let (kind, and_then) = (choices.byte(), choices.byte());
    match kind % 4 {
        0 | 1 => read(choices.rest(), and_then),
        2 => {
            let trace = recorded(&mut choices);
            real(trace.as_bytes());
            read(trace.as_bytes(), and_then);
        }
        _ => {
            let damages: Vec<(u64, u8)> = (0..choices.below(4))
                .map(|_| (choices.number(), choices.byte()))
                .collect();
            let endless = choices.once_in(64);
            let mut trace = recorded(&mut choices).into_bytes();
            for (at, byte) in damages {
                let at = usize::try_from(at % trace.len() as u64).unwrap_or(0);
                trace[at] = byte;
            }
            read(&trace, and_then);
            if endless {
                never_ending(&trace);
            }
        }
    }
}

/// The trace of an engine's life, as a process writes it.
fn recorded(choices: &mut Choices<'_>) -> String {
    let mut life = Life::new(choices);
    let mut trace = header_line(&Header {
        tenure: "0.1.0".to_owned(),
        candidate: life.candidate.clone(),
        timing: life.timing,
        batch_max: life.batch_max,
        seed: life.seed,
        store: "sqlite".to_owned(),
        boot: Some("boot".to_owned()),
        started: "2026-01-01T00:00:00Z".to_owned(),
    });
    for _ in 0..STEPS_MAX {
        let Some((now, input)) = life.next(choices) else {
            break;
        };
        let actions = life.engine.step(now, input.clone());
        trace.push_str(&step_line(now, &input, &actions));
        life.learn(&actions);
    }
    trace
}

/// What a process wrote is whole, replays, and keeps every rule.
fn real(trace: &[u8]) {
    let mut reader = Reader::new(trace).expect("a header that was written can be read");
    let replayed = replay(&mut reader).expect("a trace that was written can be read");
    assert_eq!(replayed.verdict, Verdict::Same, "a real trace does not replay");
    assert_eq!(replayed.truncated, None);
    let checked = check(&mut Reader::new(trace).expect("as above")).expect("as above");
    match checked.breach {
        None => assert_eq!(checked.steps, replayed.steps),
        // The stores of these lives grant tokens as they like, those of lost terms too.
        Some(Breach {
            rule: Rule::TokensRise | Rule::ReleasesAfterWork,
            ..
        }) => {}
        Some(breach) => panic!("a real trace breaks a rule: {breach}"),
    }
}

/// Reads, and then does with what was accepted one of the things that can be done with a trace.
fn read(trace: &[u8], and_then: u8) {
    let mut reader = match Reader::new(trace) {
        Ok(reader) => reader,
        Err(error) => {
            assert_one_line(&error.to_string());
            return;
        }
    };
    let mut lines = trace.split_inclusive(|byte| *byte == b'\n');
    let written = header_line(reader.header());
    assert_eq!(
        lines.next(),
        Some(written.as_bytes()),
        "the header is not written back as it was"
    );
    while let Some(step) = reader.next() {
        match step {
            Ok(step) => {
                let written = step_line(step.at, &step.input, &step.actions);
                assert_eq!(
                    lines.next(),
                    Some(written.as_bytes()),
                    "a step is not written back as it was"
                );
            }
            Err(error) => {
                assert_eq!(error.line, reader.line());
                assert_one_line(&error.to_string());
            }
        }
    }
    let open = || Reader::new(trace).expect("it was opened before");
    match and_then % 4 {
        0 => {
            if let Ok(replayed) = replay(&mut open())
                && let Verdict::Different(difference) = replayed.verdict
            {
                assert_ne!(difference.expected, difference.got);
            }
        }
        1 => {
            if let Ok(checked) = check(&mut open())
                && let Some(breach) = checked.breach
            {
                assert_one_line(&breach.to_string());
            }
        }
        2 => {
            for line in narrate(open()).flatten() {
                assert_one_line(&line);
            }
        }
        _ => {
            if let Err(error) = merge(vec![open(), open()]) {
                assert_one_line(&error.to_string());
            }
        }
    }
}

/// A line that never ends is given up before it has been read for long.
fn never_ending(begin: &[u8]) {
    let mut taken = 0;
    let input = Endless {
        begin,
        taken: &mut taken,
    };
    let fault = match Reader::new(input) {
        Err(error) => error.fault,
        Ok(reader) => match reader.last() {
            Some(Err(error)) => error.fault,
            Some(Ok(_)) | None => panic!("a line without an end was read"),
        },
    };
    let limit = begin.len() + LINE_BYTES_MAX + READ_AHEAD_MAX;
    assert!(taken <= limit, "{taken} bytes were read of a line without an end");
    // Where an earlier line is wrong, the endless one is never come to.
    if let TraceFault::LineTooLong = fault {
        assert!(taken >= LINE_BYTES_MAX);
    }
}

/// Some bytes, and then the same letter for ever.
struct Endless<'a> {
    begin: &'a [u8],
    taken: &'a mut usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = if self.begin.is_empty() {
            buffer.fill(b'x');
            buffer.len()
        } else {
            self.begin.read(buffer)?
        };
        *self.taken += count;
        Ok(count)
    }
}
