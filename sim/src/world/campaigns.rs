//! When processes want a lease, and when they want it no more.

use super::happening::Happening;
use super::{Calm, World};
use crate::faults::FaultKind;
use tenure_core::{Command, LeaseName};

/// How many of a thousand campaigns are wanted again soon after they were withdrawn, and how many of those
/// are called off.
const WANTED_AGAIN_PER_MILLE: u64 = 300;
const CALLED_OFF_PER_MILLE: u64 = 700;

impl World<'_> {
    /// The process wants the lease again, after a rest.
    pub(super) fn campaign_later(&mut self, slot: u8, name: &LeaseName) {
        let index = self.name_index(name);
        let rest = self.plan.work.rest;
        let process = &mut self.processes[usize::from(slot)];
        let pause = if self.calm == Calm::Faults {
            process.dice.below(rest)
        } else {
            process.dice.below(1_000_000)
        };
        let (instance, name) = (process.instance, u8::try_from(index).expect("few names"));
        self.queue
            .plan(self.now + pause, Happening::Campaigns { slot, instance, name });
    }

    pub(super) fn campaigns(&mut self, happening: Happening, slot: u8, instance: u32, name: u8) {
        if self.absent(happening, slot, instance) {
            return;
        }
        if self.now < self.lull_until {
            let process = &mut self.processes[usize::from(slot)];
            let at = self.lull_until + process.dice.below(self.plan.work.rest);
            self.queue.plan(at, happening);
            return;
        }
        let seat = &self.processes[usize::from(slot)].seats[usize::from(name)];
        let progress_within = (seat.gate != 0).then(|| std::time::Duration::from_nanos(seat.gate));
        let (name, note) = (self.names[usize::from(name)].clone(), self.note.clone());
        self.command(
            slot,
            Command::Campaign {
                name,
                note,
                progress_within,
                max_hold: None,
            },
        );
    }

    pub(super) fn withdraws(&mut self, slot: u8, instance: u32, name: u8) {
        let process = &self.processes[usize::from(slot)];
        if !process.is(instance) || process.is_frozen(self.now) || self.calm != Calm::Faults {
            return;
        }
        self.wanted_meanwhile(slot, instance, name, WANTED_AGAIN_PER_MILLE);
        self.struck(FaultKind::Withdrawal);
        let name = self.names[usize::from(name)].clone();
        self.tell(|| format!("c{slot} withdraws its campaign for {name}"));
        self.command(slot, Command::Withdraw { name });
    }

    /// What was asked for is still to be found, or to be given back. Somebody wants it again all the same,
    /// with this chance, and mostly thinks better of it.
    pub(super) fn wanted_meanwhile(&mut self, slot: u8, instance: u32, name: u8, per_mille: u64) {
        let most = self.plan.latency.most;
        let process = &mut self.processes[usize::from(slot)];
        if !process.dice.per_mille(per_mille) {
            return;
        }
        let at = self.now + process.dice.below(most);
        self.queue.plan(at, Happening::Campaigns { slot, instance, name });
        if process.dice.per_mille(CALLED_OFF_PER_MILLE) {
            let at = at + 1 + process.dice.below(most);
            self.queue.plan(at, Happening::Withdraws { slot, instance, name });
        }
    }
}
