//! Records what happens in one driver.

use super::list::{
    ATTEMPTS, CANDIDATES, DOUBTS, FAILURES, LEADER_STATUS, RELEASE_FAILURES, RENEWAL_FAILURES,
    RENEWAL_SECONDS, RENEWALS, REQUEST_SECONDS, SLACK, TERM_SECONDS, TERMS, TERMS_BEGUN, TERMS_ENDED,
    UNKNOWN, UNREACHABLE_SINCE, VALID_UNTIL, WORST_SLACK,
};
use crate::clock;
use ::metrics::{counter, gauge, histogram};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};
use tenure_core::{Cause, Certainty, End, Event, Fault, LeaseName, Moment, Operation, Reply, StoreError};

/// What the label of a lease holds for locks.
const ALL_LOCKS: &str = "*";

/// The terms of one driver, as the metrics need them.
pub(crate) struct Meter {
    of: Of,
    /// The lease of an election that is wanted or held here now.
    candidate_for: Option<LeaseName>,
    terms: BTreeMap<LeaseName, Term>,
    /// How many locks are held.
    locks: u32,
    /// Whether all locks' ends have been told to be none yet.
    has_told_none: bool,
    /// By what label the store is told to be unreachable.
    unreachable: Option<String>,
    /// When the last request was answered, or was given up.
    answered_at: Moment,
}

/// Whether each lease has metrics of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Leases,
    Locks,
    /// Nothing is told.
    Nothing,
}

struct Term {
    began: Moment,
    worst_slack: Duration,
}

impl Meter {
    /// For an election of this lease.
    pub(crate) fn of_election(name: &LeaseName) -> Self {
        let meter = Self::new(Of::Leases);
        let label = meter.label(name);
        // Before anything happens: a series that begins at 1 has not risen, for whoever alerts on a rise.
        for after in [AFTER_VACANCY, AFTER_EXPIRY] {
            counter!(TERMS_BEGUN, "lease" => label.clone(), "after" => after).increment(0);
        }
        for gauge in [CANDIDATES, LEADER_STATUS] {
            gauge!(gauge, "lease" => label.clone()).increment(0.0);
        }
        meter
    }

    /// For a lock manager.
    pub(crate) fn of_locks() -> Self {
        Self::new(Of::Locks)
    }

    /// For a lock manager of which nothing is told.
    pub(crate) fn of_nothing() -> Self {
        Self::new(Of::Nothing)
    }

    fn new(of: Of) -> Self {
        Self {
            of,
            candidate_for: None,
            terms: BTreeMap::new(),
            locks: 0,
            has_told_none: false,
            unreachable: None,
            answered_at: Moment::ZERO,
        }
    }

    fn label(&self, name: &LeaseName) -> String {
        match self.of {
            Of::Leases => name.to_string(),
            Of::Locks | Of::Nothing => ALL_LOCKS.to_owned(),
        }
    }

    /// A request is sent.
    pub(crate) fn sent(&self, operation: &Operation) {
        if self.of == Of::Nothing {
            return;
        }
        if let Operation::Acquire(acquire) = operation {
            counter!(ATTEMPTS, "lease" => self.label(&acquire.name)).increment(1);
        }
    }

    /// A request was answered after `took`, or was given up.
    pub(crate) fn answered(&mut self, about: &About, reply: Option<&Reply>, took: Duration) {
        if self.of == Of::Nothing {
            return;
        }
        if reply.is_some() {
            histogram!(REQUEST_SECONDS, "operation" => about.operation).record(took.as_secs_f64());
        }
        self.reaches(about, reply, took);
    }

    /// Tells whether the store answers.
    fn reaches(&mut self, about: &About, reply: Option<&Reply>, took: Duration) {
        if !matches!(
            about.failure(reply),
            Some((Fault::Unreachable | Fault::TimedOut, _))
        ) {
            self.reached();
        } else if self.unreachable.is_none() {
            let label = self.label_of(about);
            let since = unix_time(Duration::ZERO) - took.as_secs_f64();
            gauge!(UNREACHABLE_SINCE, "lease" => label.clone()).set(since);
            self.unreachable = Some(label);
        }
        self.answered_at = clock::now();
    }

    /// If it failed, it counts as a failure of what it was about.
    pub(crate) fn counts_failure(&self, about: &About, reply: Option<&Reply>) {
        let Some((fault, certainty)) = about.failure(reply).filter(|_| self.of != Of::Nothing) else {
            return;
        };
        if about.operation == ACQUIRE {
            counter!(FAILURES, "lease" => self.label_of(about), "reason" => fault.word()).increment(1);
        }
        if certainty == Certainty::Unknown {
            counter!(UNKNOWN, "lease" => self.label_of(about), "operation" => about.operation).increment(1);
        }
    }

    fn label_of(&self, about: &About) -> String {
        let name = about.name.as_ref();
        name.map_or_else(|| ALL_LOCKS.to_owned(), |name| self.label(name))
    }

    /// Whether the store is told to be unreachable.
    pub(crate) fn tells_of_an_outage(&self) -> bool {
        self.unreachable.is_some()
    }

    /// Nothing is asked now. An outage is told of for `patience` longer, so that whoever asks from time to
    /// time is seen to find one.
    pub(crate) fn nobody_asks(&mut self, patience: Duration) {
        if clock::now().since(self.answered_at) >= patience {
            self.reached();
        }
    }

    /// The store answers, or nobody asks it any more.
    pub(crate) fn reached(&mut self) {
        if let Some(label) = self.unreachable.take() {
            gauge!(UNREACHABLE_SINCE, "lease" => label).set(0.0);
        }
    }

    /// Something happened.
    pub(crate) fn event(&mut self, event: &Event) {
        if self.of == Of::Nothing {
            return;
        }
        match event {
            Event::Acquired {
                name, grant, until, ..
            } => {
                let after = match &grant.predecessor {
                    Some(before) if before.end == End::Expired => AFTER_EXPIRY,
                    Some(_) | None => AFTER_VACANCY,
                };
                counter!(TERMS_BEGUN, "lease" => self.label(name), "after" => after).increment(1);
                self.tell_terms(name, grant.terms);
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
                counter!(RENEWAL_FAILURES, "lease" => self.label(name), "reason" => error.fault.word())
                    .increment(1);
            }
            Event::ReleaseFailed { name, error, .. } => {
                counter!(RELEASE_FAILURES, "lease" => self.label(name), "reason" => error.fault.word())
                    .increment(1);
            }
            Event::Doubted { name, .. } => counter!(DOUBTS, "lease" => self.label(name)).increment(1),
            Event::Ended { name, cause, .. } => self.end(name, cause),
            Event::Standby { lease, .. } => self.tell_terms(&lease.name, lease.terms),
            Event::AttemptFailed { .. }
            | Event::CampaignEnded { .. }
            | Event::Withdrawn { .. }
            | Event::Reassured { .. }
            | Event::Stuck { .. }
            | Event::AskedToStepDown { .. }
            | Event::Departed { .. } => {}
        }
    }

    /// Whether somebody here wants the lease, or holds it. It is counted and not set: a process may have
    /// several elections of one name.
    pub(crate) fn wanted(&mut self, name: &LeaseName, is_wanted: bool) {
        if self.of != Of::Leases || self.candidate_for.is_some() == is_wanted {
            return;
        }
        let gauge = gauge!(CANDIDATES, "lease" => self.label(name));
        self.candidate_for = is_wanted.then(|| name.clone());
        if is_wanted {
            gauge.increment(1.0);
            // One that the store has never served is seen not to lead, too.
            gauge!(LEADER_STATUS, "lease" => self.label(name)).increment(0.0);
        } else {
            gauge.decrement(1.0);
        }
    }

    /// An attempt to open the store of `name` has failed.
    pub(crate) fn not_opened(&mut self, name: &LeaseName, error: &StoreError) {
        let about = About {
            operation: ACQUIRE,
            name: Some(name.clone()),
            certainty: Certainty::NotApplied,
        };
        let reply = Reply::Acquired(Err(error.clone()));
        self.counts_failure(&about, Some(&reply));
        self.reaches(&about, Some(&reply), Duration::ZERO);
    }

    /// As the store counts them: whoever had them, also those that have told nobody.
    fn tell_terms(&self, name: &LeaseName, terms: u64) {
        if self.of == Of::Leases {
            #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 terms")]
            gauge!(TERMS, "lease" => self.label(name)).set(terms as f64);
        }
    }

    fn begin(&mut self, name: &LeaseName, until: Moment) {
        let label = self.label(name);
        if !self.has_told_none {
            // Before any ends: a series that begins at 1 has not risen, for whoever alerts on a rise.
            for cause in CAUSES {
                counter!(TERMS_ENDED, "lease" => label.clone(), "cause" => cause).increment(0);
            }
        }
        gauge!(LEADER_STATUS, "lease" => label.clone()).increment(1.0);
        if self.of == Of::Locks {
            self.has_told_none = true;
            self.locks += 1;
            return;
        }
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
        counter!(TERMS_ENDED, "lease" => label.clone(), "cause" => cause.word()).increment(1);
        match self.of {
            Of::Locks => {
                self.locks -= 1;
                gauge!(LEADER_STATUS, "lease" => label).decrement(1.0);
            }
            Of::Leases => {
                if let Some(term) = self.terms.remove(name) {
                    leads_no_more(label.clone());
                    let lasted = clock::now().since(term.began);
                    histogram!(TERM_SECONDS, "lease" => label).record(lasted.as_secs_f64());
                }
            }
            Of::Nothing => {}
        }
    }
}

impl Drop for Meter {
    /// Whatever a driver has left behind, which a panic has ended or which was told to leave while its store
    /// did not answer: nobody else corrects its gauges.
    fn drop(&mut self) {
        // It may be the recorder that has panicked.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.reached();
            for name in self.terms.keys() {
                leads_no_more(self.label(name));
            }
            if let Some(name) = self.candidate_for.take() {
                gauge!(CANDIDATES, "lease" => self.label(&name)).decrement(1.0);
            }
            if self.locks > 0 {
                gauge!(LEADER_STATUS, "lease" => ALL_LOCKS).decrement(f64::from(self.locks));
            }
        }));
    }
}

fn leads_no_more(label: String) {
    gauge!(LEADER_STATUS, "lease" => label.clone()).decrement(1.0);
    gauge!(VALID_UNTIL, "lease" => label).set(0.0);
}

/// What the label of a beginning holds.
const AFTER_VACANCY: &str = "vacant";
const AFTER_EXPIRY: &str = "expired";

/// What the label of an end's cause may hold.
const CAUSES: [&str; 6] = [
    "given_back",
    "succeeded",
    "vanished",
    "deadline",
    "no_progress",
    "max_hold",
];

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

    /// The only lease that it is about.
    pub(crate) fn name(&self) -> Option<&LeaseName> {
        self.name.as_ref()
    }

    /// What it failed for, and what is known of its effect.
    fn failure(&self, reply: Option<&Reply>) -> Option<(Fault, Certainty)> {
        match reply {
            None => Some((Fault::TimedOut, self.certainty)),
            Some(reply) => first_error(reply).map(|error| (error.fault, error.certainty)),
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

/// A moment of this machine's clock as Unix time, as far as the wall clock is right now.
fn wall_clock(at: Moment) -> f64 {
    unix_time(at.since(clock::now()))
}

/// The Unix time in `ahead` from now.
fn unix_time(ahead: Duration) -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    (now.unwrap_or_default() + ahead).as_secs_f64()
}

#[cfg(test)]
mod tests;
