//! A standby that is told that the lease was given back asks for it within the spread of a hand-over, and one
//! that is told that something may have been missed, within its spread; also if it was told while an answer
//! was under way that may not know of it.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "hint-is-followed",
    guarantee: "G17",
    source: "I13",
    assumes: Assumes::Nothing,
};

/// What one process knows of one lease that it waits for. Nanoseconds of its own clock.
#[derive(Clone, Copy, Default, Debug)]
pub struct HintIsFollowed {
    /// The request that is under way, and when it is given up.
    asking: Option<(u64, u64)>,
    /// The answer to the last request was that another holds the lease.
    stands_by: bool,
    /// The latest token of a term that was given back, as told while a request was under way; the greatest
    /// number where it was told that any may have been.
    told_meanwhile: u64,
    /// When it asks at the latest.
    due: Option<u64>,
}

impl HintIsFollowed {
    /// It asks, by this request, until `give_up_at`.
    pub fn asks(&mut self, request: u64, give_up_at: u64) {
        *self = Self {
            asking: Some((request, give_up_at)),
            ..Self::default()
        };
    }

    /// It was told at `local` that the term with `token` was given back.
    pub fn told(&mut self, token: u64, local: u64, spread: u64) {
        if self.asking.is_some() {
            self.told_meanwhile = self.told_meanwhile.max(token);
        } else if self.stands_by {
            let due = local.saturating_add(spread);
            self.due = Some(self.due.map_or(due, |before| before.min(due)));
        }
    }

    /// It was told at `local` that it may have missed anything.
    pub fn may_have_missed(&mut self, local: u64, spread: u64) {
        self.told(u64::MAX, local, spread);
    }

    /// The answer to this request came at `local`: another holds the lease by `held`.
    pub fn stands_by(&mut self, request: u64, held: u64, local: u64, spread: u64) {
        let Some((asked, give_up_at)) = self.asking else {
            return;
        };
        if asked != request {
            return;
        }
        let outdated = self.told_meanwhile >= held && self.told_meanwhile != 0;
        *self = Self::default();
        if local < give_up_at {
            self.stands_by = true;
            self.due = outdated.then(|| local.saturating_add(spread));
        }
    }

    /// Whether it waits for another to give the lease back.
    #[must_use]
    pub fn is_standing_by(&self) -> bool {
        self.stands_by
    }

    /// It waits no more, or by other rules: it leads, it failed, or it wants the lease no longer.
    pub fn ends(&mut self) {
        *self = Self::default();
    }

    /// It was stepped at `local`, and sleeps until `wake`.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if it sleeps through what it was told.
    pub fn sleeps(&mut self, local: u64, wake: u64) -> Verdict {
        if self.asking.is_some_and(|(_, give_up_at)| local >= give_up_at) {
            self.ends();
        }
        let sound = self.due.is_none_or(|due| wake <= due);
        hold(&LAW, sound, || {
            format!("at {local} ns it sleeps until {wake} ns, though it was told of a release: {self:?}")
        })
    }
}
