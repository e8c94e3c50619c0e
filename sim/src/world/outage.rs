//! The store's clock steps; the store goes away, and comes back as another node would.

use super::World;
use super::befall::part;
use super::happening::Happening;
use super::network::Absence;
use crate::faults::FaultKind;
use crate::plan::{Broken, StoreKind};

/// What the store comes back with after a fail-over.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Return {
    pub(super) refreshes: u32,
    pub(super) loses: u32,
    pub(super) wipes: u32,
    pub(super) restores: u32,
    pub(super) fails_over: u32,
    pub(super) step: i64,
}

impl World<'_> {
    pub(super) fn befall_clock(&mut self, kind: FaultKind, size: u32, sign: i64) {
        let by = self.step_size(size);
        if by > 0 {
            self.step_store_clock(by.cast_signed() * sign);
            self.struck(kind);
        }
    }

    /// How far the store's clock may step now: within its allowance, once in a ttl, unless that is what is
    /// broken.
    fn step_size(&mut self, size: u32) -> u64 {
        let most = if self.plan.store.kind == StoreKind::Observed {
            // It judges nothing by its clock.
            0
        } else if self.plan.broken == Some(Broken::Step) {
            self.plan.ttl_longest
        } else if self.now < self.last_step + self.plan.ttl_longest * 5 / 4 {
            0
        } else {
            self.plan.step_budget
        };
        let by = part(most, size, 0, 1_000);
        // An edge is worth more than anything between.
        if size.is_multiple_of(3) { most } else { by }
    }

    fn step_store_clock(&mut self, by: i64) {
        self.last_step = self.now;
        self.store.clock.step(self.now, by);
        for view in &mut self.leases {
            if self.plan.broken == Some(Broken::Step) {
                view.exclusivity.forget();
            }
        }
        self.tell(|| format!("the store's clock steps by {by} ns"));
        self.store_clock_changed();
    }

    pub(super) fn fail_over(&mut self, kind: FaultKind, target: u32, size: u32) {
        let down = 20_000_000 + part(self.plan.ttl_longest, size, 0, 700);
        if self.plan.broken == Some(Broken::Store) && !self.network.is_down(self.now) && target % 4 < 2 {
            self.store.back_up();
        }
        let by = self.step_size(size).cast_signed();
        let coming = &mut self.coming;
        match kind {
            FaultKind::FailoverRefresh => coming.refreshes += 1,
            FaultKind::TailLoss => coming.loses += 1 + target % 3,
            FaultKind::StoreWipe => coming.wipes += 1,
            FaultKind::StoreRestore => coming.restores += 1,
            _ => coming.fails_over += 1,
        }
        if coming.step == 0 {
            coming.step = if target.is_multiple_of(2) { by } else { -by };
        }
        self.network.absence = if target % 8 < 4 {
            Absence::Silent
        } else {
            Absence::Refusing
        };
        let until = self.network.down_until.max(self.now + down);
        self.network.down_until = until;
        self.queue.plan(until, Happening::StoreReturns);
        for slot in 0..self.processes.len() {
            self.break_watch(u8::try_from(slot).expect("few processes"));
        }
        self.tell(|| {
            format!(
                "the store is away until {:?}",
                std::time::Duration::from_nanos(until)
            )
        });
    }

    pub(super) fn store_returns(&mut self) {
        if self.network.is_down(self.now) {
            return;
        }
        let coming = std::mem::take(&mut self.coming);
        // Between the announcement and now another step may have been taken: the allowance is for both.
        if coming.step != 0 && self.step_size(0) >= coming.step.unsigned_abs() {
            self.step_store_clock(coming.step);
        }
        for _ in 0..coming.fails_over {
            self.struck(FaultKind::StoreFailover);
        }
        let mut came = Vec::new();
        if coming.refreshes > 0 && self.store.refresh(self.now) {
            came.push(FaultKind::FailoverRefresh);
        }
        if coming.loses > 0 && self.store.lose_tail(coming.loses) {
            came.push(FaultKind::TailLoss);
        }
        if coming.restores > 0 && self.store.restore() {
            came.push(FaultKind::StoreRestore);
        }
        if coming.wipes > 0 && self.store.wipe() {
            came.push(FaultKind::StoreWipe);
        }
        for kind in came {
            self.struck(kind);
            self.tell(|| format!("the store is back: {}", kind.name()));
            for view in &mut self.leases {
                if kind != FaultKind::FailoverRefresh {
                    view.tokens.forgot();
                }
            }
        }
        for index in 0..self.names.len() {
            self.record_changed(index);
        }
    }
}
