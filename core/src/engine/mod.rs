//! The election engine: one state machine, without clock, chance or I/O.

mod actions;
mod agenda;
mod campaign;
mod departure;
mod dice;
mod due;
mod heart;
mod heir;
mod hint;
mod input;
mod releasing;
mod rename;
mod requests;
mod search;
mod seat;
mod seats;
mod term;

pub use actions::{Actions, Cause, Departure, Event, Operation, Request, Wake, WakeReason};
pub use input::{Command, Input, Reply, RequestId};
pub use rename::Rename;

use crate::{
    Acquired, Attempt, Authority, Belief, Candidate, Certainty, Fault, LeaseName, Moment, Released, Renewed,
    StoreError, Timing,
};
use dice::Dice;
use due::Due;
use requests::{InFlight, Requests};
use seat::{Seat, Wanted};
use seats::Seats;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Elects one process: a seat per lease name that it wants or holds, and one heart that renews all held
/// seats in as few store calls as the store allows.
///
/// Its whole state is a function of its construction and its inputs, and compares and hashes; the pairs of
/// moment and input are the trace, and the trace is the replay. The moments given to
/// [`step`](Self::step) must not decrease.
///
/// - **The holder counts from before sending:** a term ends at `sent_at + trust(granted ttl)`, where
///   `sent_at` is the moment of the step that asked for the request granted last. A late reply is dropped.
/// - At the deadline authority is gone without any reply. "Another holder seen" ends a term at once, "no
///   answer" at the deadline, and an error never ends an election, unless an operator must act first.
/// - Of the renewals that are due at once, twelve requests are under way at most; the longest due go first,
///   and the rest follows as answers or time-outs come, each counted from when it was sent itself. So it is
///   with releases, which are for 250 leases at most at a time.
/// - A store may need time for each release of a request. One that was not answered in time is sent again in
///   smaller ones, and the next may be larger again once those are answered.
/// - Every campaign has a new attempt, so that no token is taken up again after its release was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Engine {
    candidate: Candidate,
    timing: Timing,
    batch_max: NonZeroUsize,
    /// How many releases go in one request: fewer after one that took too long.
    releases_together: usize,
    dice: Dice,
    /// By how much this process beats apart from others, in 256ths of a quarter of the renewal interval.
    phase: u8,
    next_attempt: Attempt,
    next_request: u64,
    seats: Seats,
    in_flight: Requests,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Acquire,
    Renew,
    Release,
    Look,
}

impl Engine {
    /// An engine that holds and wants nothing.
    ///
    /// `batch_max` is how many leases one request may renew or release
    /// ([`StoreTraits::batch_max`](crate::StoreTraits::batch_max)). `seed` feeds the jitter; different
    /// processes should have different ones, so that those that begin together do not all renew at once.
    #[must_use]
    pub fn new(candidate: Candidate, timing: Timing, batch_max: NonZeroUsize, seed: u64) -> Self {
        let dice = Dice::new(seed);
        Self {
            candidate,
            timing,
            batch_max,
            releases_together: batch_max.get(),
            phase: dice.part(),
            dice,
            next_attempt: Attempt::FIRST,
            next_request: 0,
            seats: Seats::new(timing.grace),
            in_flight: Requests::default(),
        }
    }

    /// Lets time pass until `now`, then takes in `input`, then says what to do.
    pub fn step(&mut self, now: Moment, input: Input) -> Actions {
        let mut actions = Actions::default();
        // An answer that is here is taken in before its request is given up, but never after the term's end:
        // first deadlines, then the answer, then time-outs.
        self.end_overdue_terms(now, &mut actions);
        match input {
            Input::Tick => {}
            Input::Answer { request, reply } => self.answer(now, request, reply, &mut actions),
            Input::Watch(event) => self.hint(now, event, &mut actions),
            Input::Command(command) => self.command(now, command, &mut actions),
        }
        self.give_up_overdue_requests(now, &mut actions);
        self.report_doubt(now, &mut actions);
        self.send_due_requests(now, &mut actions);
        actions.wake = self.next_wake();
        actions
    }

    /// What this process may believe at `now` about `name`. The only question; there is no `is_leader`.
    #[must_use]
    pub fn authority(&self, name: &LeaseName, now: Moment) -> Authority {
        self.belief(name).map_or(Authority::None, |belief| belief.at(now))
    }

    /// What is believed of `name` from now on, until the next step; `None` without a term.
    #[must_use]
    pub fn belief(&self, name: &LeaseName) -> Option<Belief> {
        match self.seats.get(name) {
            Some(Seat::Term(term)) => Some(Belief {
                token: term.token,
                doubt_from: term.doubt_from(self.timing.grace),
                ending_from: term.ending_since,
                until: term.until,
            }),
            Some(Seat::Campaign(_) | Seat::Departure(_) | Seat::Search(_)) | None => None,
        }
    }

    /// Who this engine campaigns for.
    #[must_use]
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// Its timing.
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Whether nothing is wanted, held, or being given back: the process may leave.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.seats.is_empty()
    }

    /// Whether there are terms and nothing else: each ends with its work, and nothing is on its way to the
    /// store but what keeps them.
    #[must_use]
    pub fn is_idle_but_for_terms(&self) -> bool {
        let is_term = |seat: &LeaseName| matches!(self.seats.get(seat), Some(Seat::Term(_)));
        !self.is_idle() && self.seats.names().all(is_term)
    }

    /// Whether what is left of an earlier term or try is still to be released or found: a campaign for it
    /// begins after that.
    #[must_use]
    pub fn is_leaving(&self, name: &LeaseName) -> bool {
        let seats = &self.seats;
        matches!(seats.get(name), Some(Seat::Departure(_) | Seat::Search(_)))
    }

    /// Whether a campaign for it runs: one by [`Command::HandOn`] has begun as the term before it ended.
    #[must_use]
    pub fn campaigns_for(&self, name: &LeaseName) -> bool {
        let seats = &self.seats;
        matches!(seats.get(name), Some(Seat::Campaign(_)))
    }

    fn command(&mut self, now: Moment, command: Command, actions: &mut Actions) {
        match command {
            Command::Campaign {
                name,
                note,
                progress_within,
                max_hold,
            } => {
                self.campaign(
                    now,
                    name,
                    Wanted {
                        note,
                        progress_within,
                        max_hold,
                    },
                );
            }
            Command::Withdraw { name } => self.withdraw(now, &name, None, actions),
            Command::StepDown { name, token } => self.begin_to_end(now, &name, token),
            Command::WorkEnded { name, token } => self.work_ended(now, &name, token, actions),
            Command::HandOn {
                name,
                token,
                note,
                progress_within,
                max_hold,
            } => {
                let wanted = Wanted {
                    note,
                    progress_within,
                    max_hold,
                };
                self.hand_on(now, &name, token, wanted, actions);
            }
            Command::DeadlineSeen { name, token } => self.deadline_seen(&name, token, actions),
            Command::Extend { name, token } => self.extend_now(now, &name, token),
            Command::Progress { name, token, at } => self.progress(&name, token, at.min(now), now),
        }
    }

    fn answer(&mut self, now: Moment, request: RequestId, reply: Reply, actions: &mut Actions) {
        // A request that is not in the list was given up, or answered before: a late reply never extends.
        let Some(sent) = self.in_flight.remove(request) else {
            return;
        };
        match (sent.kind, reply) {
            (Kind::Acquire, Reply::Acquired(result)) => {
                let result = told_of(sent.names.first(), result, |acquired| match acquired {
                    Acquired::Held(lease) => Some(&lease.name),
                    Acquired::Granted(_) | Acquired::Superseded => None,
                });
                self.acquired(now, request, &sent, result, actions);
            }
            (Kind::Renew, Reply::Renewed(results)) => {
                let mut results = results.into_iter();
                for name in &sent.names {
                    let result = results.next().unwrap_or_else(|| Err(unanswered(name)));
                    let result = told_of(Some(name), result, |renewed| match renewed {
                        Renewed::Lost(lease) => lease.as_ref().map(|lease| &lease.name),
                        Renewed::Extended { .. } => None,
                    });
                    self.renewed(now, request, sent.sent_at, name, result, actions);
                }
                // A late answer may tell of so short a grant that its term is over already.
                self.end_overdue_terms(now, actions);
            }
            (Kind::Release, Reply::Released(results)) => {
                self.learn_of_releases(&results);
                let mut results = results.into_iter();
                for name in &sent.names {
                    let result = results.next().unwrap_or_else(|| Err(unanswered(name)));
                    let result = told_of(Some(name), result, |released| match released {
                        Released::NotYours(lease) => lease.as_ref().map(|lease| &lease.name),
                        Released::Vacated => None,
                    });
                    self.released(now, request, name, result, actions);
                }
            }
            (Kind::Look, Reply::Looked(result)) => {
                let result = told_of(sent.names.first(), result, |lease| {
                    lease.as_ref().map(|lease| &lease.name)
                });
                self.looked(now, request, &sent, result, actions);
            }
            // A driver that mixes its answers up has told us nothing.
            (Kind::Acquire | Kind::Renew | Kind::Release | Kind::Look, _) => {
                self.failed(
                    now,
                    request,
                    &sent,
                    Fault::Internal,
                    "the answer is of another kind",
                    actions,
                );
            }
        }
    }

    fn give_up_overdue_requests(&mut self, now: Moment, actions: &mut Actions) {
        for request in self.in_flight.overdue(now) {
            if let Some(sent) = self.in_flight.remove(request) {
                self.failed(now, request, &sent, Fault::TimedOut, "no answer in time", actions);
            }
        }
    }

    /// Takes in that nothing is known of a request.
    fn failed(
        &mut self,
        now: Moment,
        request: RequestId,
        sent: &InFlight,
        fault: Fault,
        why: &str,
        actions: &mut Actions,
    ) {
        if sent.kind == Kind::Release && fault == Fault::TimedOut {
            self.releases_took_too_long(sent.names.len());
        }
        let waited = now.since(sent.sent_at);
        for name in &sent.names {
            let error = StoreError {
                fault,
                certainty: Certainty::Unknown,
                message: format!("lease \"{name}\": {why} ({waited:.0?}); is the store reachable?"),
            };
            match sent.kind {
                Kind::Acquire => self.acquired(now, request, sent, Err(error), actions),
                Kind::Renew => self.renewed(now, request, sent.sent_at, name, Err(error), actions),
                Kind::Release => self.released(now, request, name, Err(error), actions),
                Kind::Look => self.looked(now, request, sent, Err(error), actions),
            }
        }
    }

    /// Numbers a request and remembers it. `give_up_at` is bounded by the request time-out.
    fn send(
        &mut self,
        now: Moment,
        kind: Kind,
        names: Vec<LeaseName>,
        limit: Option<Moment>,
        operation: Operation,
        actions: &mut Actions,
    ) -> RequestId {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let timeout = now.after(self.timing.request_timeout);
        let give_up_at = limit.map_or(timeout, |limit| limit.min(timeout));
        self.in_flight.insert(
            id,
            InFlight {
                sent_at: now,
                give_up_at,
                kind,
                names,
            },
        );
        actions.requests.push(Request {
            id,
            give_up_at,
            operation,
        });
        id
    }

    /// When to wake, and why: the soonest of everything that is awaited.
    fn next_wake(&mut self) -> Option<Wake> {
        let requests = self.in_flight.next_wake();
        // While every place is taken, they wait for an answer or a time-out.
        let renewals_wait = self.in_flight.places_for_renewals() == 0;
        let releases_wait = self.in_flight.places_for_releases() == 0;
        let waits = |due| match due {
            Due::Renewal => renewals_wait,
            Due::Release => releases_wait,
            Due::Deadline | Due::Doubt | Due::Stuck | Due::Attempt | Due::Look => false,
        };
        self.seats
            .agenda()
            .next_wake(waits)
            .into_iter()
            .chain(requests)
            .min()
    }

    fn new_attempt(&mut self) -> Attempt {
        let attempt = self.next_attempt;
        self.next_attempt = attempt.next();
        attempt
    }

    /// How long a campaign pauses after a failure, with so many in a row before it.
    fn back_off(&mut self, failures: u32) -> Duration {
        let pauses = self.timing.back_off(failures);
        self.dice.between(*pauses.start(), *pauses.end())
    }
}

fn unanswered(name: &LeaseName) -> StoreError {
    StoreError::unknown(
        Fault::Internal,
        format!("lease \"{name}\": the store's answer leaves it out"),
    )
}

/// An answer that tells of another lease than was asked about has told us nothing.
fn told_of<T>(
    asked: Option<&LeaseName>,
    result: Result<T, StoreError>,
    told: impl FnOnce(&T) -> Option<&LeaseName>,
) -> Result<T, StoreError> {
    let answer = result?;
    match (asked, told(&answer)) {
        (Some(asked), Some(told)) if asked != told => {
            let message = format!("lease \"{asked}\": the store's answer tells of lease \"{told}\"");
            Err(StoreError::unknown(Fault::Internal, message))
        }
        _ => Ok(answer),
    }
}
