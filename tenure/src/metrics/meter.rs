//! Records what happens in one driver.

use super::list::{
    ATTEMPTS, DOUBTS, FAILURES, LEADER_STATUS, RENEWAL_FAILURES, RENEWAL_SECONDS, RENEWALS, REQUEST_SECONDS,
    SLACK, TERM_SECONDS, TERMS_BEGUN, TERMS_ENDED, UNKNOWN, UNREACHABLE_SINCE, VALID_UNTIL, WORST_SLACK,
};
use crate::clock;
use ::metrics::{counter, gauge, histogram};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use tenure_core::{Cause, Certainty, End, Event, Fault, LeaseName, Moment, Operation, Reply, StoreError};

/// What the label of a lease holds for locks.
const ALL_LOCKS: &str = "*";

/// The terms of one driver, as the metrics need them.
pub(crate) struct Meter {
    of: Of,
    terms: BTreeMap<LeaseName, Term>,
    is_answered: bool,
}

/// Whether each lease has metrics of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Leases,
    Locks,
}

struct Term {
    began: Moment,
    worst_slack: Duration,
}

impl Meter {
    /// For an election.
    pub(crate) fn of_leases() -> Self {
        Self::new(Of::Leases)
    }

    /// For a lock manager.
    pub(crate) fn of_locks() -> Self {
        Self::new(Of::Locks)
    }

    fn new(of: Of) -> Self {
        Self {
            of,
            terms: BTreeMap::new(),
            is_answered: true,
        }
    }

    fn label(&self, name: &LeaseName) -> String {
        match self.of {
            Of::Leases => name.to_string(),
            Of::Locks => ALL_LOCKS.to_owned(),
        }
    }

    /// A request is sent.
    pub(crate) fn sent(&self, operation: &Operation) {
        if let Operation::Acquire(acquire) = operation {
            counter!(ATTEMPTS, "lease" => self.label(&acquire.name)).increment(1);
        }
    }

    /// A request was answered after `took`, or was given up.
    pub(crate) fn answered(&mut self, about: &About, reply: Option<&Reply>, took: Duration) {
        if reply.is_some() {
            histogram!(REQUEST_SECONDS, "operation" => about.operation).record(took.as_secs_f64());
        }
        let outcome = match reply {
            None => Err((Fault::TimedOut, about.certainty)),
            Some(reply) => first_error(reply).map_or(Ok(()), |error| Err((error.fault, error.certainty))),
        };
        let label = || {
            about
                .name
                .as_ref()
                .map_or_else(|| ALL_LOCKS.to_owned(), |name| self.label(name))
        };
        if let Err((fault, certainty)) = outcome {
            if about.operation == ACQUIRE {
                counter!(FAILURES, "lease" => label(), "reason" => reason(fault)).increment(1);
            }
            if certainty == Certainty::Unknown {
                counter!(UNKNOWN, "lease" => label(), "operation" => about.operation).increment(1);
            }
        }
        let is_answered = !matches!(outcome, Err((Fault::Unreachable | Fault::TimedOut, _)));
        if is_answered != self.is_answered {
            let since = if is_answered {
                0.0
            } else {
                unix_time(Duration::ZERO)
            };
            gauge!(UNREACHABLE_SINCE, "lease" => label()).set(since);
            self.is_answered = is_answered;
        }
    }

    /// Something happened.
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::Acquired {
                name, grant, until, ..
            } => {
                let after = match &grant.predecessor {
                    Some(before) if before.end == End::Expired => "expired",
                    Some(_) | None => "vacant",
                };
                counter!(TERMS_BEGUN, "lease" => self.label(name), "after" => after).increment(1);
                self.begin(name, *until);
            }
            Event::Renewed {
                name,
                until,
                round_trip,
                slack,
                ..
            } => self.renewed(name, *until, *round_trip, *slack),
            Event::RenewalFailed { name, error, .. } => {
                counter!(RENEWAL_FAILURES, "lease" => self.label(name), "reason" => reason(error.fault))
                    .increment(1);
            }
            Event::Doubted { name, .. } => counter!(DOUBTS, "lease" => self.label(name)).increment(1),
            Event::Ended { name, cause, .. } => self.end(name, cause),
            Event::Standby { lease, .. } => {
                if self.of == Of::Leases && !self.terms.contains_key(&lease.name) {
                    // So that a standby is seen to be one.
                    gauge!(LEADER_STATUS, "lease" => self.label(&lease.name)).set(0.0);
                }
            }
            Event::AttemptFailed { .. }
            | Event::CampaignEnded { .. }
            | Event::Withdrawn { .. }
            | Event::Reassured { .. }
            | Event::Stuck { .. }
            | Event::AskedToStepDown { .. }
            | Event::Departed { .. } => {}
        }
    }

    fn begin(&mut self, name: &LeaseName, until: Moment) {
        let label = self.label(name);
        if self.of == Of::Locks {
            gauge!(LEADER_STATUS, "lease" => label).increment(1.0);
            return;
        }
        gauge!(LEADER_STATUS, "lease" => label.clone()).set(1.0);
        gauge!(VALID_UNTIL, "lease" => label.clone()).set(wall_clock(until));
        let now = clock::now();
        let worst_slack = until.since(now);
        gauge!(WORST_SLACK, "lease" => label).set(worst_slack.as_secs_f64());
        let term = Term {
            began: now,
            worst_slack,
        };
        self.terms.insert(name.clone(), term);
    }

    fn renewed(&mut self, name: &LeaseName, until: Moment, round_trip: Duration, slack: Duration) {
        let label = self.label(name);
        counter!(RENEWALS, "lease" => label.clone()).increment(1);
        histogram!(RENEWAL_SECONDS, "lease" => label.clone()).record(round_trip.as_secs_f64());
        histogram!(SLACK, "lease" => label.clone()).record(slack.as_secs_f64());
        if let Some(term) = self.terms.get_mut(name) {
            gauge!(VALID_UNTIL, "lease" => label.clone()).set(wall_clock(until));
            term.worst_slack = term.worst_slack.min(slack);
            gauge!(WORST_SLACK, "lease" => label).set(term.worst_slack.as_secs_f64());
        }
    }

    fn end(&mut self, name: &LeaseName, cause: &Cause) {
        let label = self.label(name);
        let cause = match cause {
            Cause::GivenBack => "given_back",
            Cause::Succeeded { .. } => "succeeded",
            Cause::Vanished => "vanished",
            Cause::Deadline(_) => "deadline",
            Cause::NoProgress(_) => "no_progress",
            Cause::MaxHold(_) => "max_hold",
        };
        counter!(TERMS_ENDED, "lease" => label.clone(), "cause" => cause).increment(1);
        match self.of {
            Of::Locks => gauge!(LEADER_STATUS, "lease" => label).decrement(1.0),
            Of::Leases => {
                gauge!(LEADER_STATUS, "lease" => label.clone()).set(0.0);
                gauge!(VALID_UNTIL, "lease" => label.clone()).set(0.0);
                if let Some(term) = self.terms.remove(name) {
                    let lasted = clock::now().since(term.began);
                    histogram!(TERM_SECONDS, "lease" => label).record(lasted.as_secs_f64());
                }
            }
        }
    }
}

const ACQUIRE: &str = "acquire";

/// What a request was about, for when its answer is there.
pub(crate) struct About {
    operation: &'static str,
    /// `None` for more than one.
    name: Option<LeaseName>,
    /// What is known if it is given up.
    certainty: Certainty,
}

impl About {
    pub(crate) fn of(operation: &Operation) -> Self {
        let (operation, name, certainty) = match operation {
            Operation::Acquire(acquire) => (ACQUIRE, Some(&acquire.name), Certainty::Unknown),
            Operation::Renew(renewals) => (
                "renew",
                only(renewals).map(|renew| &renew.name),
                Certainty::Unknown,
            ),
            Operation::Release(releases) => (
                "release",
                only(releases).map(|release| &release.name),
                Certainty::Unknown,
            ),
            Operation::Look(name) => ("look", Some(name), Certainty::NotApplied),
        };
        Self {
            operation,
            name: name.cloned(),
            certainty,
        }
    }
}

fn only<T>(requests: &[T]) -> Option<&T> {
    match requests {
        [only] => Some(only),
        _ => None,
    }
}

/// Of a batch one is enough: what breaks a request breaks it for all.
fn first_error(reply: &Reply) -> Option<&StoreError> {
    match reply {
        Reply::Acquired(answer) => answer.as_ref().err(),
        Reply::Looked(answer) => answer.as_ref().err(),
        Reply::Renewed(answers) => answers.iter().find_map(|answer| answer.as_ref().err()),
        Reply::Released(answers) => answers.iter().find_map(|answer| answer.as_ref().err()),
    }
}

fn reason(fault: Fault) -> &'static str {
    match fault {
        Fault::Unreachable => "unreachable",
        Fault::TimedOut => "timed_out",
        Fault::Busy => "busy",
        Fault::Full => "full",
        Fault::Unauthenticated => "unauthenticated",
        Fault::Forbidden => "forbidden",
        Fault::ReadOnly => "read_only",
        Fault::Unreadable => "unreadable",
        Fault::Unsupported => "unsupported",
        Fault::Invalid => "invalid",
        Fault::Internal => "internal",
    }
}

/// A moment of this machine's clock as Unix time, as far as the wall clock is right now.
fn wall_clock(at: Moment) -> f64 {
    unix_time(at.since(clock::now()))
}

/// The Unix time in `ahead` from now.
fn unix_time(ahead: Duration) -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    (now.unwrap_or_default() + ahead).as_secs_f64()
}
