//! A token is never taken up again after its term ended or its release was sent: the next attempt is another.
//! And no try is another attempt before that, or a lost reply would cost a second term.

use super::{Assumes, Law, Verdict, hold, one_term_per_attempt};

pub(super) const LAW: Law = Law {
    name: "attempt-rotates",
    guarantee: "G5",
    source: "I9",
    assumes: Assumes::Nothing,
};

/// The attempts of one process for one lease.
#[derive(Clone, Copy, Default, Debug)]
pub struct AttemptRotates {
    latest: u64,
    spent: u64,
    next: Next,
}

/// What the next try is to be.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Next {
    /// A new attempt, or the first one.
    #[default]
    MayBeNew,
    /// The same attempt again: nothing has ended it.
    IsTheSame,
    /// A new attempt: the store will never grant this one.
    IsNew,
}

impl AttemptRotates {
    /// The process asks for the lease by this attempt.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if a term or a release of it has been before, or a later attempt, or the
    /// store said that it never grants it; or if it is a new one though the one before has neither led to
    /// anything nor been given up.
    pub fn asks(&mut self, attempt: u64) -> Verdict {
        let before = *self;
        self.latest = self.latest.max(attempt);
        self.next = Next::IsTheSame;
        let overtaken = before.next == Next::IsNew && attempt == before.latest;
        hold(
            &LAW,
            attempt > before.spent && attempt >= before.latest && !overtaken,
            || format!("attempt {attempt} is asked with after {before:?}"),
        )?;
        let kept = before.next != Next::IsTheSame || attempt == before.latest;
        hold(&one_term_per_attempt::LAW, kept, || {
            format!(
                "attempt {attempt} is asked with while attempt {} is unresolved",
                before.latest
            )
        })
    }

    /// A term began by the latest attempt.
    pub fn began(&mut self) {
        self.spent = self.latest;
        self.next = Next::MayBeNew;
    }

    /// The process sent a release for this attempt.
    pub fn released(&mut self, attempt: u64) {
        self.spent = self.spent.max(attempt);
        self.next = Next::MayBeNew;
    }

    /// The store said that it knows of a later attempt: this one can never win.
    pub fn superseded(&mut self) {
        self.next = Next::IsNew;
    }

    /// The latest attempt that it asked by.
    #[must_use]
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// The campaign ended: the next attempt may be new.
    pub fn given_up(&mut self) {
        self.next = Next::MayBeNew;
    }
}
