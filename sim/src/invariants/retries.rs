//! Who fails pauses before it tries again, and does try again: no store that is down is asked without end,
//! and nothing is left undone because one answer was lost.

use super::{Assumes, Law, Verdict, hold};

pub(super) const PACE_LAW: Law = Law {
    name: "failure-is-waited-out",
    guarantee: "G18",
    source: "I14",
    assumes: Assumes::Nothing,
};

pub(super) const RETRY_LAW: Law = Law {
    name: "failure-is-tried-again",
    guarantee: "G17",
    source: "I13",
    assumes: Assumes::Nothing,
};

/// The shortest and the longest pause after a failure, in nanoseconds of the process's own clock.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pauses {
    /// Before that, it does not ask again.
    pub least: u64,
    /// After that, it has.
    pub most: u64,
}

/// What one process does to take, to find or to give back one lease, where that fails. Nanoseconds of its own
/// clock.
#[derive(Clone, Copy, Default, Debug)]
pub struct Retries {
    asking: Option<Asking>,
    /// Between when and when it is to ask again.
    again: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    request: u64,
    give_up_at: u64,
    pauses: Pauses,
}

impl Retries {
    /// It asks at `local`, by this request, until `give_up_at`; if that fails, it makes such a pause.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if it has failed before, and asks too soon.
    pub fn asks(&mut self, request: u64, give_up_at: u64, pauses: Pauses, local: u64) -> Verdict {
        let again = self.again.take();
        self.asking = Some(Asking {
            request,
            give_up_at,
            pauses,
        });
        hold(&PACE_LAW, again.is_none_or(|(from, _)| local >= from), || {
            format!("it failed, and asks again at {local} ns, not between {again:?}")
        })
    }

    /// The answer to this request came, and is none of an error.
    pub fn answered(&mut self, request: u64) {
        if self.asking.is_some_and(|asking| asking.request == request) {
            *self = Self::default();
        }
    }

    /// An error came at `local` in place of the answer to this request.
    pub fn failed(&mut self, request: u64, local: u64) {
        if let Some(asking) = self.asking.filter(|asking| asking.request == request) {
            self.fails(asking.pauses, local);
        }
    }

    fn fails(&mut self, pauses: Pauses, local: u64) {
        let (from, until) = (
            local.saturating_add(pauses.least),
            local.saturating_add(pauses.most),
        );
        (self.asking, self.again) = (None, Some((from, until)));
    }

    /// Whether what it asked last has failed by `local`, or was given up.
    #[must_use]
    pub fn has_failed(&self, local: u64) -> bool {
        self.again.is_some() || self.asking.is_some_and(|asking| local >= asking.give_up_at)
    }

    /// It asks no more, or by other rules.
    pub fn ends(&mut self) {
        *self = Self::default();
    }

    /// It was stepped at `local`, and sleeps until `wake`.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if it sleeps through the time at which it is to try again.
    pub fn sleeps(&mut self, local: u64, wake: u64) -> Verdict {
        if let Some(asking) = self.asking.filter(|asking| local >= asking.give_up_at) {
            self.fails(asking.pauses, local);
        }
        let again = self.again;
        hold(&RETRY_LAW, again.is_none_or(|(_, until)| wake <= until), || {
            format!(
                "at {local} ns it sleeps until {wake} ns, though it failed and is to ask again between {again:?}"
            )
        })
    }
}
