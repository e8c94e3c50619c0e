use crate::{Breach, Checked, Reader, Rule, TermSpan, TraceError, check};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use tenure_core::{Candidate, LeaseName};

/// What the traces of several processes came to, held against each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merged {
    /// How many steps they have together.
    pub steps: u64,
    /// How many terms.
    pub terms: u64,
    /// How many of the terms passed from one process to another.
    pub passed_on: u64,
    /// Where a rule was first broken, and in which of the traces, counted from 0.
    pub breach: Option<(usize, Breach)>,
    /// Which of the traces were cut off: what they would have told is not known.
    pub truncated: Vec<usize>,
    /// Which of the traces are open at the end, as [`Checked::open`] has it: what their processes did after
    /// is not known, and not held against the others.
    pub open: Vec<usize>,
    /// The terms of which it cannot be decided whether somebody else believed at the same time, each with its
    /// trace: their end was not recorded, and another began between the last moment of their trace and their
    /// deadline. No breach if the process had been killed and somebody gave its lease back, as the warden of
    /// `tenure run` does; one if only its recording had ended.
    pub undecided: Vec<(usize, TermSpan)>,
}

/// Traces that cannot be held against each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MergeError {
    /// One cannot be read.
    Trace {
        /// Which, counted from 0.
        trace: usize,
        /// Why.
        error: TraceError,
    },
    /// One was recorded on another machine or in another boot than the first, or does not say: its moments
    /// mean nothing beside the others'.
    AnotherBoot {
        /// Which, counted from 0.
        trace: usize,
    },
    /// Two are of the same process.
    Twice {
        /// The later one, counted from 0.
        trace: usize,
        /// Whose it is.
        candidate: Candidate,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace { trace, error } => write!(f, "trace {}: {error}", trace + 1),
            Self::AnotherBoot { trace } => write!(
                f,
                "trace {}: not known to be of the machine and boot of the first, so their moments cannot be \
                 compared; check each by itself",
                trace + 1
            ),
            Self::Twice { trace, candidate } => write!(
                f,
                "trace {}: of {candidate}, which an earlier one is of, too; give each once",
                trace + 1
            ),
        }
    }
}

impl std::error::Error for MergeError {}

/// Checks each trace, and then that at any moment at most one process believed in a term of each lease, with
/// tokens that rise from term to term. A term whose end was not recorded counts until the last moment of its
/// trace: what begins after that, and before its deadline, is [`undecided`](Merged::undecided).
///
/// The traces are of one machine, one boot and one store; that they are of one store is the caller's to know,
/// since a trace does not tell which it was. Memory: one line, and a little for each term.
///
/// # Errors
/// [`MergeError`].
pub fn merge<R: Read>(readers: impl IntoIterator<Item = Reader<R>>) -> Result<Merged, MergeError> {
    let mut boot = None;
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut terms: BTreeMap<LeaseName, Vec<(usize, TermSpan)>> = BTreeMap::new();
    let mut merged = Merged {
        steps: 0,
        terms: 0,
        passed_on: 0,
        breach: None,
        truncated: Vec::new(),
        open: Vec::new(),
        undecided: Vec::new(),
    };
    for (trace, mut reader) in readers.into_iter().enumerate() {
        let header = reader.header();
        let same = header.boot.is_some() && header.boot == *boot.get_or_insert_with(|| header.boot.clone());
        if !same {
            return Err(MergeError::AnotherBoot { trace });
        }
        let candidate = header.candidate.clone();
        if candidates
            .iter()
            .any(|known| known.incarnation == candidate.incarnation)
        {
            return Err(MergeError::Twice { trace, candidate });
        }
        candidates.push(candidate);
        let checked = check(&mut reader).map_err(|error| MergeError::Trace { trace, error })?;
        let Checked {
            steps,
            terms: spans,
            breach,
            truncated,
            open,
        } = checked;
        merged.steps += steps;
        merged.terms += spans.len() as u64;
        merged.truncated.extend(truncated.map(|_| trace));
        merged.open.extend(open.then_some(trace));
        for span in spans {
            terms.entry(span.name.clone()).or_default().push((trace, span));
        }
        if let Some(breach) = breach {
            merged.breach.get_or_insert((trace, breach));
        }
    }
    for spans in terms.into_values() {
        let breach = in_turn(spans, &candidates, &mut merged);
        merged.breach = merged.breach.or(breach);
    }
    Ok(merged)
}

/// Counts how often one lease passed from process to process, and finds where two believed in it at once.
fn in_turn(
    mut spans: Vec<(usize, TermSpan)>,
    candidates: &[Candidate],
    merged: &mut Merged,
) -> Option<(usize, Breach)> {
    spans.sort_by_key(|(_, span)| (span.from, span.token));
    for pair in spans.windows(2) {
        let [(by, earlier), (to, later)] = pair else {
            continue;
        };
        let breach = |rule| Breach {
            line: later.line,
            rule,
            what: format!(
                "lease \"{}\": {}, then {}",
                later.name,
                told(&candidates[*by], earlier),
                told(&candidates[*to], later)
            ),
        };
        // Of three that overlap, two neighbours do: the first breach is always seen, and every undecided
        // term.
        if later.from < earlier.recorded_until {
            return Some((*to, breach(Rule::OneBeliever)));
        }
        if later.token <= earlier.token {
            return Some((*to, breach(Rule::TokensRise)));
        }
        if later.from < earlier.until {
            merged.undecided.push((*by, earlier.clone()));
        }
        merged.passed_on += u64::from(by != to);
    }
    None
}

fn told(candidate: &Candidate, span: &TermSpan) -> String {
    let TermSpan {
        token,
        from,
        recorded_until,
        ended,
        ..
    } = span;
    let at_least = if *ended { "" } else { "at least " };
    format!("{candidate} in term {token} from {from:?} to {at_least}{recorded_until:?}")
}
