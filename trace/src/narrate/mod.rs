//! Tells a person what happened in a process, a line for each step.

mod told;

use crate::{Header, Reader, Step, TraceError};
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use tenure_core::{Event, FencingToken, LeaseName, Moment};
use told::{came_in, happened, passed, reason, sent};

/// A trace in words: an iterator over lines of text without their ends.
///
/// First a few lines on what the trace is of; then for each step when it was, in milliseconds since the
/// first, what came in, what went out, and what the process believed afterwards; last whether it was whole.
#[derive(Debug)]
pub struct Narration<R> {
    reader: Reader<R>,
    ready: VecDeque<String>,
    narrator: Narrator,
    over: bool,
}

/// Tells what a trace says.
pub fn narrate<R: Read>(reader: Reader<R>) -> Narration<R> {
    Narration {
        ready: preface(reader.header()).into(),
        reader,
        narrator: Narrator::default(),
        over: false,
    }
}

impl<R: Read> Iterator for Narration<R> {
    type Item = Result<String, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(line) = self.ready.pop_front() {
            return Some(Ok(line));
        }
        match self.reader.next() {
            Some(step) => Some(step.map(|step| self.narrator.tell(&step))),
            None if self.over => None,
            None => {
                self.over = true;
                let line = self.reader.truncated()?;
                Some(Ok(format!(
                    "line {line} was cut off: the process ended while it wrote"
                )))
            }
        }
    }
}

fn preface(header: &Header) -> Vec<String> {
    let Header {
        tenure,
        candidate,
        timing,
        store,
        started,
        ..
    } = header;
    let mut lines = vec![format!(
        "candidate {candidate}, tenure {tenure}, store {store}, started {started}"
    )];
    lines.extend(timing.explain().to_string().lines().map(str::to_owned));
    lines
}

/// What is known while a trace is told.
#[derive(Debug, Default)]
struct Narrator {
    start: Option<Moment>,
    terms: BTreeMap<LeaseName, Believed>,
}

#[derive(Clone, Copy, Debug)]
struct Believed {
    token: FencingToken,
    until: Moment,
    doubtful: bool,
}

impl Narrator {
    fn tell(&mut self, step: &Step) -> String {
        let start = *self.start.get_or_insert(step.at);
        let mut out: Vec<String> = Vec::new();
        for event in &step.actions.events {
            self.take_in(event);
            out.push(happened(event));
        }
        out.extend(step.actions.requests.iter().map(|request| sent(request, start)));
        if let Some(wake) = step.actions.wake {
            out.push(format!(
                "wakes at {} for {}",
                passed(start, wake.at),
                reason(wake.why)
            ));
        }
        let out = if out.is_empty() {
            "nothing".to_owned()
        } else {
            out.join("; ")
        };
        format!(
            "{:>12}  {} => {out}  [{}]",
            passed(start, step.at),
            came_in(&step.input, start),
            self.belief(start)
        )
    }

    fn take_in(&mut self, event: &Event) {
        match event {
            Event::Acquired {
                name, grant, until, ..
            } => {
                let believed = Believed {
                    token: grant.token,
                    until: *until,
                    doubtful: false,
                };
                self.terms.insert(name.clone(), believed);
            }
            Event::Renewed { name, until, .. } => {
                if let Some(term) = self.terms.get_mut(name) {
                    term.until = *until;
                }
            }
            Event::Doubted { name, .. } | Event::AskedToStepDown { name, .. } => self.doubt(name, true),
            Event::Reassured { name, .. } => self.doubt(name, false),
            Event::Ended { name, .. } => {
                self.terms.remove(name);
            }
            Event::Standby { .. }
            | Event::AttemptFailed { .. }
            | Event::CampaignEnded { .. }
            | Event::Withdrawn { .. }
            | Event::RenewalFailed { .. }
            | Event::Stuck { .. }
            | Event::ReleaseFailed { .. }
            | Event::Departed { .. } => {}
        }
    }

    fn doubt(&mut self, name: &LeaseName, doubtful: bool) {
        if let Some(term) = self.terms.get_mut(name) {
            term.doubtful = doubtful;
        }
    }

    fn belief(&self, start: Moment) -> String {
        if self.terms.is_empty() {
            return "does not lead".to_owned();
        }
        let told = |(name, term): (&LeaseName, &Believed)| {
            let Believed {
                token,
                until,
                doubtful,
            } = term;
            let how = if *doubtful { "leads in doubt" } else { "leads" };
            format!("{how} \"{name}\" in term {token} until {}", passed(start, *until))
        };
        self.terms.iter().map(told).collect::<Vec<_>>().join(", ")
    }
}
