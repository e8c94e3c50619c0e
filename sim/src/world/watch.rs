//! The store's watch: hints that lag and repeat, break and leave things out, but never lie about order.

use super::World;
use super::driver::Extensions;
use super::happening::Happening;
use super::process::{Reach, WatchState};
use crate::faults::FaultKind;
use crate::invariants::loss_ends_the_term;
use crate::plan::nanoseconds;
use crate::sometimes::Sometimes;
use tenure_core::{Change, FencingToken, Input, WatchEvent};

impl World<'_> {
    /// The process watches, from soon on.
    pub(super) fn watch_on(&mut self, slot: u8) {
        let most = self.plan.latency.most;
        let process = &mut self.processes[usize::from(slot)];
        if process.watch == WatchState::Off && process.engine.is_some() {
            process.watch = WatchState::Starting;
            let instance = process.instance;
            let pause = 2 * most + process.dice.below(nanoseconds(process.timing.retry_every()));
            self.queue
                .plan(self.now + pause, Happening::WatchBegins { slot, instance });
        }
    }

    /// The process's watch breaks; its driver begins another.
    pub(super) fn break_watch(&mut self, slot: u8) {
        let process = &mut self.processes[usize::from(slot)];
        if process.watch == WatchState::On {
            process.watch = WatchState::Off;
            self.watch_on(slot);
        }
    }

    pub(super) fn watch_begins(&mut self, slot: u8, instance: u32) {
        let process = &mut self.processes[usize::from(slot)];
        if !process.is(instance) || process.watch != WatchState::Starting {
            return;
        }
        let open = process.cut_to == Reach::Open && process.cut_from == Reach::Open;
        if process.is_frozen(self.now) || !open {
            // It begins again when the process goes on, or can be reached.
            process.watch = WatchState::Off;
            return;
        }
        if self.network.is_down(self.now) {
            let pause = process.dice.below(nanoseconds(process.timing.retry_every()));
            let at = self.network.down_until + pause;
            self.queue.plan(at, Happening::WatchBegins { slot, instance });
            return;
        }
        process.watch = WatchState::On;
        let (local, spread) = (
            process.clock.shown(self.now),
            nanoseconds(process.timing.spread()),
        );
        for seat in &mut process.seats {
            seat.hints.may_have_missed(local, spread);
        }
        // What happened before the watch was in place may have been missed.
        self.step(slot, Input::Watch(WatchEvent::Gap), &Extensions::default());
    }

    /// Tells every watch what the store has noted since the last time.
    pub(super) fn tell_watches(&mut self) {
        let events = self.store.take_events();
        for event in events {
            let WatchEvent::Changed { name, change, token } = event else {
                continue;
            };
            let name = u8::try_from(self.name_index(&name)).expect("few names");
            let token = token.map_or(0, FencingToken::number);
            for slot in 0..self.processes.len() {
                if self.processes[slot].watch == WatchState::On {
                    self.send_hint(u8::try_from(slot).expect("few processes"), name, change, token);
                }
            }
        }
    }

    fn send_hint(&mut self, slot: u8, name: u8, change: Change, token: u64) {
        let latency = self.plan.latency;
        let ttl = self.plan.ttl_longest;
        let process = &mut self.processes[usize::from(slot)];
        if process.arms.watch_loss > 0 {
            process.arms.watch_loss -= 1;
            self.struck(FaultKind::WatchLoss);
            return;
        }
        let mut at = self.now + process.dice.between(latency.least, latency.most);
        let delay = std::mem::take(&mut process.arms.watch_delay);
        if delay > 0 {
            at += ttl * u64::from(delay) / 1024;
        }
        at = at.max(process.watch_last);
        process.watch_last = at;
        let instance = process.instance;
        let hint = Happening::Hint {
            slot,
            instance,
            name,
            change,
            token,
        };
        let again = process.arms.watch_duplicate > 0;
        if again {
            process.arms.watch_duplicate -= 1;
            process.watch_last = at + 1_000_000;
        }
        self.queue.plan(at, hint);
        if delay > 0 {
            self.struck(FaultKind::WatchDelay);
        }
        if again {
            self.queue.plan(at + 1_000_000, hint);
            self.struck(FaultKind::WatchDuplicate);
        }
    }

    pub(super) fn hint(
        &mut self,
        happening: Happening,
        slot: u8,
        instance: u32,
        name: u8,
        change: Change,
        token: u64,
    ) {
        if self.absent(happening, slot, instance) {
            return;
        }
        let (index, seen) = (usize::from(name), token);
        let seat = &self.processes[usize::from(slot)].seats[index];
        let (before, ending) = (seat.believed.token, seat.ending);
        let name = self.names[index].clone();
        let token = FencingToken::new(token).ok();
        let event = WatchEvent::Changed { name, change, token };
        if change == Change::Vacated {
            let process = &mut self.processes[usize::from(slot)];
            let spread = nanoseconds(process.timing.explain().hand_over);
            process.seats[index]
                .hints
                .told(seen, process.clock.shown(self.now), spread);
        }
        self.step(slot, Input::Watch(event), &Extensions::default());
        let believed = self.processes[usize::from(slot)].seats[index].believed.token;
        // Tokens only rise: a greater one began later, so that whoever is told of it leads no more.
        if change == Change::Taken && seen > believed && self.leases[index].tokens.promised() {
            self.judge(loss_ends_the_term(before, believed));
        }
        if change == Change::Asked && seen == before && seen != ending {
            self.judge_wish(slot, index, seen, Sometimes::WishToldByWatch);
        }
    }
}
