//! What is true: the records of the store, when they expire in real time, and who believes what meanwhile.
//!
//! Belief and record are compared whenever one of them changes, and at the very moment of every expiry.
//! Between those, neither changes, so that no moment of real time is left out.

use super::World;
use super::process::NEVER;
use crate::invariants::{belief_is_sound, one_believer};
use crate::plan::Grants;
use crate::stores::MILLISECOND;

impl World<'_> {
    /// The record of a lease may have changed.
    pub(super) fn record_changed(&mut self, index: usize) {
        let truth = self.store.truth(index);
        self.leases[index].truth = truth;
        self.reckon_expiry(index);
        for slot in 0..self.processes.len() {
            let believed = self.processes[slot].seats[index].believed;
            if believed.at(self.now) {
                self.judge_soundness(slot, index, self.now);
            }
        }
    }

    /// The store's clock was changed: every expiry is reckoned anew.
    pub(super) fn store_clock_changed(&mut self) {
        for index in 0..self.names.len() {
            self.record_changed(index);
        }
    }

    fn reckon_expiry(&mut self, index: usize) {
        let now = self.now;
        let view = &mut self.leases[index];
        view.expires_real = match view.truth {
            Some(truth) if !truth.released => self
                .store
                .clock
                .real_at(truth.expires_ms.saturating_mul(MILLISECOND)),
            Some(_) | None => NEVER,
        };
        view.expiry_due = if view.expires_real > now {
            view.expires_real
        } else {
            NEVER
        };
    }

    pub(super) fn expiry_is_due(&self, at: u64) -> bool {
        self.leases.iter().any(|view| view.expiry_due <= at)
    }

    /// Looks at every expiry until `at`: who believes beyond it?
    pub(super) fn cross_expiries(&mut self, at: u64) {
        for index in 0..self.names.len() {
            let due = self.leases[index].expiry_due;
            if due > at {
                continue;
            }
            self.leases[index].expiry_due = NEVER;
            for slot in 0..self.processes.len() {
                if self.processes[slot].seats[index].believed.at(due) {
                    self.judge_soundness(slot, index, due);
                }
            }
        }
    }

    /// A process believes anew, or for longer.
    pub(super) fn judge_belief(&mut self, slot: u8, index: usize) {
        let slot = usize::from(slot);
        let mine = self.processes[slot].seats[index].believed;
        if !mine.at(self.now) {
            return;
        }
        self.judge_soundness(slot, index, self.now);
        let forced = self.leases[index].forced;
        for other in 0..self.processes.len() {
            let theirs = self.processes[other].seats[index].believed;
            if other != slot
                && theirs.at(self.now)
                && !forced.contains(&theirs.token)
                && !forced.contains(&mine.token)
                && !self.is_unheard_of(other, index)
                && !self.is_unheard_of(slot, index)
            {
                let holder = |slot: usize| u64::from(self.processes[slot].instance);
                let verdict = one_believer((holder(slot), mine), (holder(other), theirs), self.now);
                self.judge(verdict);
            }
        }
    }

    /// Whether the store has changed what it granted, and this process cannot know: where grants vary, only
    /// what was heard of is promised.
    fn is_unheard_of(&self, slot: usize, index: usize) -> bool {
        self.plan.store.grants != Grants::Alike
            && self.leases[index].last_applied != self.processes[slot].seats[index].heard
    }

    fn judge_soundness(&mut self, slot: usize, index: usize, real: u64) {
        let process = &self.processes[slot];
        let view = &self.leases[index];
        let believed = process.seats[index].believed;
        // An operator released it under its holder: that is what operators are told not to expect.
        if view.forced.contains(&believed.token) || self.is_unheard_of(slot, index) {
            return;
        }
        let holder = u64::from(process.instance);
        if let Err(breach) = belief_is_sound(holder, believed, view.truth, view.expires_real, real) {
            self.breached(real, *breach);
        }
    }
}
