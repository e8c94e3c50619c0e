//! What must hold of an engine whatever it is told: a judge that sees only inputs, actions and authority.
//!
//! It keeps a seat of its own for every name, and says for each step which events the input makes due. It
//! knows nothing of when requests are due; it knows which are allowed.

mod events;
mod inputs;
mod requests;
mod seat;

use seat::{Due, Seat};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use tenure_core::{
    Actions, Attempt, Authority, Candidate, Input, LeaseName, Moment, Operation, RequestId, Timing,
};

/// A rule that an engine broke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// By what.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.detail)
    }
}

/// One step, as it is seen from outside.
pub struct Sight<'a> {
    /// The moment of the step.
    pub now: Moment,
    /// What the engine was told.
    pub input: &'a Input,
    /// What it wants done.
    pub actions: &'a Actions,
    /// What it answers about authority after the step.
    pub authority: &'a dyn Fn(&LeaseName, Moment) -> Authority,
    /// Whether it says that nothing is wanted or held.
    pub is_idle: bool,
}

/// The judge of one engine's life.
#[derive(Clone, Debug)]
pub struct Checker {
    candidate: Candidate,
    timing: Timing,
    batch_max: NonZeroUsize,
    now: Moment,
    last_request: Option<RequestId>,
    last_attempts: BTreeMap<LeaseName, Attempt>,
    seats: BTreeMap<LeaseName, Seat>,
    open: BTreeMap<RequestId, Open>,
    due: Vec<(LeaseName, Due)>,
}

/// A request that was neither answered nor given up.
#[derive(Clone, Debug)]
struct Open {
    sent_at: Moment,
    give_up_at: Moment,
    operation: Operation,
}

impl Open {
    fn names(&self) -> Vec<LeaseName> {
        match &self.operation {
            Operation::Acquire(acquire) => vec![acquire.name.clone()],
            Operation::Renew(renewals) => renewals.iter().map(|renew| renew.name.clone()).collect(),
            Operation::Release(releases) => releases.iter().map(|release| release.name.clone()).collect(),
            Operation::Look(name) => vec![name.clone()],
        }
    }
}

impl Checker {
    /// The judge of an engine that was made with the same arguments and has not been stepped.
    #[must_use]
    pub fn new(candidate: Candidate, timing: Timing, batch_max: NonZeroUsize) -> Self {
        Self {
            candidate,
            timing,
            batch_max,
            now: Moment::ZERO,
            last_request: None,
            last_attempts: BTreeMap::new(),
            seats: BTreeMap::new(),
            open: BTreeMap::new(),
            due: Vec::new(),
        }
    }

    /// Looks at what the engine answers at `now` **before** it is stepped: time has passed, nothing else.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn look(
        &self,
        now: Moment,
        authority: &dyn Fn(&LeaseName, Moment) -> Authority,
    ) -> Result<(), Violation> {
        for (name, seat) in &self.seats {
            if let Seat::Term(term) = seat
                && term.until <= now
                && authority(name, now) != Authority::None
            {
                return broken(
                    "G3 authority ends at the deadline without a step",
                    name,
                    authority(name, now),
                );
            }
        }
        Ok(())
    }

    /// Judges one step.
    ///
    /// # Errors
    /// The first rule that is broken. The judge is of no use afterwards.
    pub fn see(&mut self, sight: &Sight<'_>) -> Result<(), Violation> {
        self.now = sight.now;
        self.due.clear();
        let overdue = self.take_overdue_terms(&sight.actions.events)?;
        self.take_input(sight.input);
        self.take_timeouts();
        for event in &sight.actions.events[overdue..] {
            self.take_event(event)?;
        }
        if let Some((name, due)) = self.due.iter().find(|(_, due)| due.is_required()) {
            return broken("G12 what is due is told", name, due);
        }
        for request in &sight.actions.requests {
            self.take_request(request)?;
        }
        self.check_authority(sight)?;
        self.check_wake(sight)
    }

    fn check_authority(&self, sight: &Sight<'_>) -> Result<(), Violation> {
        let now = sight.now;
        for (name, seat) in &self.seats {
            let authority = (sight.authority)(name, now);
            let Seat::Term(term) = seat else {
                if authority != Authority::None || (sight.authority)(name, LAST) != Authority::None {
                    return broken("G3 belief only within a term", name, authority);
                }
                continue;
            };
            let (token, until) = match authority {
                Authority::Held { .. } | Authority::Doubtful { .. } if term.ending => {
                    return broken("G10 a term that is being ended is ending", name, authority);
                }
                Authority::Ending { .. } if !term.ending => {
                    return broken("G10 nobody has ended this term", name, authority);
                }
                Authority::Held { token, until }
                | Authority::Doubtful { token, until, .. }
                | Authority::Ending { token, until, .. } => (token, until),
                Authority::None => return broken("G11 belief lasts until the deadline", name, term),
            };
            if token != term.token || until != term.until {
                return broken("G2 belief counts from before sending", name, (authority, term));
            }
            let end = (sight.authority)(name, until);
            if end != Authority::None {
                return broken("G3 authority ends at the deadline without a step", name, end);
            }
        }
        if sight.is_idle != self.seats.values().all(|seat| matches!(seat, Seat::Idle)) {
            let names: Vec<&LeaseName> = self.seats.keys().collect();
            return broken("an engine is idle when nothing is wanted or held", "all", names);
        }
        Ok(())
    }

    fn check_wake(&self, sight: &Sight<'_>) -> Result<(), Violation> {
        let rule = "the wake is neither missing, nor late, nor past";
        let waits = !sight.is_idle || !self.open.is_empty();
        let Some(wake) = sight.actions.wake else {
            return if waits {
                broken(rule, "all", "no wake")
            } else {
                Ok(())
            };
        };
        let deadlines = self.seats.values().filter_map(|seat| match seat {
            Seat::Term(term) => Some(term.until),
            Seat::Idle | Seat::Campaign(_) | Seat::Departure(_) | Seat::Search(_) => None,
        });
        let latest = deadlines
            .chain(self.open.values().map(|open| open.give_up_at))
            .min();
        // At the last representable moment, there is no later one.
        let past = wake.at <= sight.now && sight.now != LAST;
        if !waits || past || latest.is_some_and(|latest| wake.at > latest) {
            return broken(rule, "all", (sight.now, wake, latest));
        }
        Ok(())
    }
}

/// The last moment that there is.
const LAST: Moment = Moment::from_nanos(u64::MAX);

fn broken<T>(rule: &'static str, name: impl fmt::Display, found: impl fmt::Debug) -> Result<T, Violation> {
    Err(Violation {
        rule,
        detail: format!("lease {name}: {found:?}"),
    })
}
