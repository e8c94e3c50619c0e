//! Holds a trace against what is promised, by its lines alone: the engine's code has no part in it.

mod rule;
mod terms;

pub use rule::{Breach, Rule};
pub use terms::TermSpan;

use crate::{Header, Reader, Step, TraceError};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use tenure_core::{
    Event, FencingToken, Input, LeaseName, Moment, Operation, Reply, Request, RequestId, Timing,
};
use terms::Seat;

/// What a check came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// How many steps were checked.
    pub steps: u64,
    /// Every term that began in them, in the order of their beginnings.
    pub terms: Vec<TermSpan>,
    /// Where a rule was first broken; the check went no further.
    pub breach: Option<Breach>,
    /// The number of the last line, if it was cut off.
    pub truncated: Option<u64>,
    /// Whether it is open at the end: its engine still led, wanted or gave back something, as a process that
    /// was killed leaves it, and as does a recording that stopped while the process went on. What came after
    /// is not known.
    pub open: bool,
}

/// Checks a trace against every [`Rule`] for a single process.
///
/// # Errors
/// [`TraceError`] at the first line that cannot be read.
pub fn check<R: Read>(reader: &mut Reader<R>) -> Result<Checked, TraceError> {
    let mut checker = Checker::new(reader.header());
    let mut steps = 0;
    let mut breach = None;
    while let Some(step) = reader.next() {
        if let Err(Broken { rule, what }) = checker.step(reader.line(), &step?) {
            let line = reader.line();
            breach = Some(Breach { line, rule, what });
            break;
        }
        steps += 1;
    }
    let truncated = reader.truncated();
    Ok(Checked {
        steps,
        open: truncated.is_some() || checker.awaits_more,
        terms: checker.into_terms(),
        breach,
        truncated,
    })
}

/// A rule that a step breaks.
struct Broken {
    rule: Rule,
    what: String,
}

fn hold(keeps: bool, rule: Rule, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if keeps {
        Ok(())
    } else {
        Err(Broken { rule, what: what() })
    }
}

/// A request without an answer yet.
struct Sent {
    at: Moment,
    give_up_at: Moment,
    operation: Operation,
}

struct Checker {
    timing: Timing,
    seats: BTreeMap<LeaseName, Seat>,
    sent: BTreeMap<RequestId, Sent>,
    /// The terms that go on and the requests by their ends: a step that looked at each of them would make a
    /// trace of millions take for ever.
    terms_by_end: BTreeSet<(Moment, LeaseName)>,
    sent_by_end: BTreeSet<(Moment, RequestId)>,
    last_request: Option<RequestId>,
    terms: Vec<TermSpan>,
    /// The moment of the last step.
    last: Moment,
    /// Whether the engine is to be stepped again: it is not when it wants nothing, and then a process may
    /// end.
    awaits_more: bool,
}

/// The answer of a step, with its request.
struct Answered<'a> {
    sent: Sent,
    reply: &'a Reply,
}

impl Checker {
    fn new(header: &Header) -> Self {
        Self {
            timing: header.timing,
            seats: BTreeMap::new(),
            sent: BTreeMap::new(),
            terms_by_end: BTreeSet::new(),
            sent_by_end: BTreeSet::new(),
            last_request: None,
            terms: Vec::new(),
            last: Moment::ZERO,
            // A trace without a step has told nothing.
            awaits_more: true,
        }
    }

    fn step(&mut self, line: u64, step: &Step) -> Result<(), Broken> {
        let Step { at, input, actions } = step;
        (self.last, self.awaits_more) = (*at, actions.wake.is_some());
        let answered = match input {
            Input::Answer { request, reply } => self.over(*request).map(|sent| Answered { sent, reply }),
            Input::Tick | Input::Watch(_) | Input::Command(_) => None,
        };
        for event in &actions.events {
            self.event(line, *at, input, answered.as_ref(), event)?;
        }
        if let Some((_, name)) = self.terms_by_end.first() {
            self.seats[name].over_by(*at, name)?;
        }
        while let Some((give_up_at, request)) = self.sent_by_end.first().copied()
            && give_up_at <= *at
        {
            self.over(request);
        }
        for request in &actions.requests {
            self.request(*at, request)?;
        }
        let term = self.terms_by_end.first().map(|(until, _)| *until);
        let request = self.sent_by_end.first().map(|(give_up_at, _)| *give_up_at);
        let soonest = term.into_iter().chain(request).min();
        let wake = actions.wake.map(|wake| wake.at);
        hold(
            soonest.is_none_or(|soonest| wake.is_some_and(|wake| wake <= soonest)),
            Rule::WakesInTime,
            || format!("a term or a request ends at {soonest:?}, but the engine wakes at {wake:?}"),
        )
    }

    fn event(
        &mut self,
        line: u64,
        at: Moment,
        input: &Input,
        answered: Option<&Answered<'_>>,
        event: &Event,
    ) -> Result<(), Broken> {
        let timing = self.timing;
        match event {
            Event::Acquired {
                name, grant, until, ..
            } => {
                let sent_at = answered.and_then(|answered| answered.granted(name, grant));
                let span = TermSpan {
                    name: name.clone(),
                    token: grant.token,
                    line,
                    from: at,
                    until: *until,
                    recorded_until: at,
                    ended: false,
                };
                let limit = sent_at.map(|sent_at| sent_at.after(timing.trust(grant.ttl)));
                self.change(name, |seat| seat.begin(span, limit))
            }
            Event::Renewed {
                name, token, until, ..
            } => {
                let extended = answered.and_then(|answered| answered.extended(name, *token));
                let limit = extended.map(|(sent_at, ttl)| sent_at.after(timing.trust(ttl)));
                self.change(name, |seat| seat.extend(at, *token, *until, limit))
            }
            Event::Ended { name, token, cause } => {
                let span = self.change(name, |seat| seat.end(at, *token, cause, input))?;
                self.terms.push(span);
                Ok(())
            }
            Event::RenewalFailed { name, token, .. }
            | Event::Doubted { name, token, .. }
            | Event::Reassured { name, token }
            | Event::Stuck { name, token, .. }
            | Event::AskedToStepDown { name, token } => self.seat(name).goes_on(*token),
            Event::Standby { lease, .. } => self.seat(&lease.name).is_free("a standby"),
            Event::AttemptFailed { name, .. } => self.seat(name).is_free("a failed attempt"),
            Event::CampaignEnded { name, .. } | Event::Withdrawn { name } => {
                self.seat(name).is_free("the end of a campaign")
            }
            Event::ReleaseFailed { name, token, .. } | Event::Departed { name, token, .. } => {
                self.seat(name).may_release(*token)
            }
        }
    }

    fn request(&mut self, at: Moment, request: &Request) -> Result<(), Broken> {
        let Request {
            id,
            give_up_at,
            operation,
        } = request;
        let number = id.number();
        let timeout = at.after(self.timing.request_timeout());
        hold(
            self.last_request.is_none_or(|last| last < *id),
            Rule::RequestsWithinTerm,
            || format!("request {number} has the number of an earlier one"),
        )?;
        hold(
            (at..=timeout).contains(give_up_at),
            Rule::RequestsWithinTerm,
            || format!("request {number} is given up at {give_up_at:?}, not by {timeout:?}"),
        )?;
        match operation {
            Operation::Acquire(acquire) => self.seat(&acquire.name).is_free("an attempt")?,
            Operation::Look(name) => self.seat(name).is_free("a search")?,
            Operation::Renew(renewals) => {
                for renew in renewals {
                    self.seat(&renew.name).goes_on(renew.token)?;
                    let until = self.seat(&renew.name).until();
                    hold(
                        until.is_some_and(|until| *give_up_at <= until),
                        Rule::RequestsWithinTerm,
                        || {
                            format!(
                                "renewal {number} is given up at {give_up_at:?}, its term ends at {until:?}"
                            )
                        },
                    )?;
                }
            }
            Operation::Release(releases) => {
                for release in releases {
                    self.seat(&release.name).release(release.token)?;
                }
            }
        }
        self.last_request = Some(*id);
        let sent = Sent {
            at,
            give_up_at: *give_up_at,
            operation: operation.clone(),
        };
        self.sent.insert(*id, sent);
        self.sent_by_end.insert((*give_up_at, *id));
        Ok(())
    }

    /// A request was answered or given up.
    fn over(&mut self, request: RequestId) -> Option<Sent> {
        let sent = self.sent.remove(&request)?;
        self.sent_by_end.remove(&(sent.give_up_at, request));
        Some(sent)
    }

    fn seat(&mut self, name: &LeaseName) -> &mut Seat {
        self.seats.entry(name.clone()).or_insert_with(|| Seat::new(name))
    }

    /// Changes the term of a seat.
    fn change<T>(
        &mut self,
        name: &LeaseName,
        change: impl FnOnce(&mut Seat) -> Result<T, Broken>,
    ) -> Result<T, Broken> {
        let seat = self.seat(name);
        let before = seat.until();
        let outcome = change(seat);
        let after = seat.until();
        if let Some(until) = before {
            self.terms_by_end.remove(&(until, name.clone()));
        }
        self.terms_by_end.extend(after.map(|until| (until, name.clone())));
        outcome
    }

    /// Every term, those too that had not ended.
    fn into_terms(self) -> Vec<TermSpan> {
        let mut terms = self.terms;
        let open = self
            .seats
            .into_values()
            .filter_map(|seat| seat.into_open(self.last));
        terms.extend(open);
        terms.sort_by_key(|term| term.line);
        terms
    }
}

impl Answered<'_> {
    /// When the request was sent that granted this.
    fn granted(&self, name: &LeaseName, grant: &tenure_core::Grant) -> Option<Moment> {
        match (&self.sent.operation, self.reply) {
            (Operation::Acquire(asked), Reply::Acquired(Ok(tenure_core::Acquired::Granted(given))))
                if asked.name == *name && given == grant =>
            {
                Some(self.sent.at)
            }
            _ => None,
        }
    }

    /// When the request was sent that extended this term, and by how much. A renewal of the term before, of
    /// the same lease, says nothing of it.
    fn extended(&self, name: &LeaseName, token: FencingToken) -> Option<(Moment, tenure_core::Ttl)> {
        let (Operation::Renew(renewals), Reply::Renewed(results)) = (&self.sent.operation, self.reply) else {
            return None;
        };
        let index = renewals
            .iter()
            .position(|renew| renew.name == *name && renew.token == token)?;
        match results.get(index) {
            Some(Ok(tenure_core::Renewed::Extended { ttl, .. })) => Some((self.sent.at, *ttl)),
            Some(Ok(tenure_core::Renewed::Lost(_)) | Err(_)) | None => None,
        }
    }
}
