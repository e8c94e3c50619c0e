//! How processes start, stand still, go on, and die.

use super::World;
use super::driver::Extensions;
use super::happening::Happening;
use super::process::{NEVER, Reach, WatchState};
use crate::chance::mix;
use crate::faults::FaultKind;
use std::num::NonZeroUsize;
use tenure_core::{Candidate, Engine, Incarnation, Input, Sightings};

impl World<'_> {
    /// Starts the process of a slot, with the id that the slot has now.
    pub(super) fn start(&mut self, slot: u8) {
        self.starts += 1;
        let instance = self.starts;
        let gated = self.plan.work.gated_per_mille;
        let gate = 3 * (self.plan.work.think + self.plan.work.compute) + self.plan.ttl_longest / 4;
        let process = &mut self.processes[usize::from(slot)];
        let bits = u128::from(mix(u64::from(instance) ^ self.plan.seed)) << 64 | u128::from(instance);
        let candidate = Candidate {
            id: process.id.clone(),
            incarnation: Incarnation::from_bits(bits),
        };
        let batch = NonZeroUsize::new(if process.dice.per_mille(800) { 1_000 } else { 2 }).expect("not zero");
        let engine = Engine::new(candidate, process.timing, batch, process.dice.roll());
        process.engine = Some(engine);
        process.sightings = Sightings::new(self.plan.observers_rate_error_ppm);
        process.instance = instance;
        for seat in &mut process.seats {
            seat.gate = if process.dice.per_mille(gated) { gate } else { 0 };
        }
        for name in 0..self.plan.names {
            let pause = self.processes[usize::from(slot)].dice.below(50_000_000);
            self.queue
                .plan(self.now + pause, Happening::Campaigns { slot, instance, name });
        }
        self.tell(|| format!("c{slot} starts as process {instance}"));
    }

    /// Kills the process of a slot. What it has sent goes on; what it believed is gone with it.
    pub(super) fn kill(&mut self, slot: u8) {
        self.processes[usize::from(slot)].die();
        self.tell(|| format!("c{slot} is killed"));
    }

    pub(super) fn restart(&mut self, slot: u8, instance: u32) {
        let process = &self.processes[usize::from(slot)];
        if process.engine.is_none() && process.instance == instance {
            self.struck(FaultKind::Restart);
            self.start(slot);
        }
    }

    pub(super) fn twin_ends(&mut self, slot: u8, instance: u32) {
        if self.processes[usize::from(slot)].is(instance) {
            self.kill(slot);
        }
    }

    /// Makes the process stand still for a while.
    pub(super) fn freeze(&mut self, slot: u8, duration: u64) {
        let now = self.now;
        let process = &mut self.processes[usize::from(slot)];
        let until = process.frozen_until.max(now + duration);
        process.frozen_until = until;
        self.queue.plan(until, Happening::Resumes { slot });
        self.tell(|| {
            format!(
                "c{slot} stands still until {:?}",
                std::time::Duration::from_nanos(until)
            )
        });
    }

    /// Whether something that comes to a process finds nobody: it died, or stands still and finds it later.
    pub(super) fn absent(&mut self, happening: Happening, slot: u8, instance: u32) -> bool {
        let now = self.now;
        let process = &mut self.processes[usize::from(slot)];
        if !process.is(instance) {
            return true;
        }
        let frozen = process.is_frozen(now);
        if frozen {
            process.deferred.push(happening);
        }
        frozen
    }

    pub(super) fn resume(&mut self, slot: u8) {
        let now = self.now;
        let process = &mut self.processes[usize::from(slot)];
        if process.engine.is_none() || process.is_frozen(now) {
            return;
        }
        if let Some(since) = process.clock_frozen_at.take() {
            process.clock.step(now, -(now - since).cast_signed());
            process.reckon_beliefs();
        }
        let instance = process.instance;
        for happening in std::mem::take(&mut process.deferred) {
            self.queue.plan(now, happening);
        }
        if self.processes[usize::from(slot)].watch == WatchState::Off {
            self.watch_on(slot);
        }
        self.tell(|| format!("c{slot} goes on"));
        let process = &mut self.processes[usize::from(slot)];
        process.wake_planned = NEVER;
        // Its timers fire first, or what waits in its sockets: both orders are possible.
        if process.dice.per_mille(500) {
            self.step(slot, Input::Tick, &Extensions::default());
        } else {
            let process = &mut self.processes[usize::from(slot)];
            process.wake_planned = now + 1;
            self.queue.plan(now + 1, Happening::Wake { slot, instance });
        }
    }

    /// Cuts the process off from the store, in the directions given, for a while.
    pub(super) fn cut(&mut self, slot: u8, to: Reach, from: Reach, duration: u64) {
        let process = &mut self.processes[usize::from(slot)];
        process.cuts += 1;
        let number = process.cuts;
        if to == Reach::Cut {
            process.cut_to = Reach::Cut;
        }
        if from == Reach::Cut {
            process.cut_from = Reach::Cut;
        }
        self.queue
            .plan(self.now + duration, Happening::Heals { slot, number });
        self.break_watch(slot);
        self.tell(|| {
            let duration = std::time::Duration::from_nanos(duration);
            format!("c{slot} is cut off for {duration:?}: to the store {to:?}, from it {from:?}")
        });
    }

    pub(super) fn heal_partition(&mut self, slot: u8, number: u32) {
        let process = &mut self.processes[usize::from(slot)];
        if process.cuts == number {
            (process.cut_to, process.cut_from) = (Reach::Open, Reach::Open);
            self.watch_on(slot);
        }
    }

    /// Makes the process's clock run at another rate.
    pub(super) fn drift(&mut self, slot: u8, rate_ppm: i64) {
        let process = &mut self.processes[usize::from(slot)];
        process.clock.set_rate(self.now, rate_ppm);
        process.reckon_beliefs();
        process.wake_planned = NEVER;
        if process.engine.is_some() {
            self.plan_wake(slot);
        }
    }
}
