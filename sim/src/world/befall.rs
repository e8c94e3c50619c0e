//! The faults of the calendar, as they come.

use super::World;
use super::happening::Happening;
use super::process::{Reach, WatchState};
use crate::faults::FaultKind;
use crate::plan::{Broken, Planned, StoreKind, nanoseconds};
use tenure_core::Command;

/// A size of 0 ..= 1023 as a part of `whole`, from `least` to `most` thousandths of it.
pub(super) fn part(whole: u64, size: u32, least: u64, most: u64) -> u64 {
    whole * (least * 1_024 + (most - least) * u64::from(size)) / 1_024_000
}

impl World<'_> {
    pub(super) fn befall(&mut self, ordinal: u32) {
        let planned = self.plan.calendar[ordinal as usize];
        let Planned {
            kind, target, size, ..
        } = planned;
        let candidates = usize::from(self.plan.candidates);
        let slot = u8::try_from(target as usize % candidates).expect("few candidates");
        let index = target as usize / 16 % self.names.len();
        let armed = u16::try_from(size.max(1)).expect("at most 1023");
        self.tell(|| format!("[{ordinal}] {} (c{slot}, size {size})", kind.name()));
        let arms = &mut self.processes[usize::from(slot)].arms;
        match kind {
            FaultKind::RequestLost => arms.lose_request += 1,
            FaultKind::ReplyLost => arms.lose_reply += 1,
            FaultKind::AppliedThenError => arms.cut_after = armed,
            FaultKind::Delay => arms.delay = armed,
            FaultKind::Reordering => arms.reorder = armed,
            FaultKind::Duplicate => arms.duplicate += 1,
            FaultKind::LateDuplicate => arms.late_duplicate = armed,
            FaultKind::Busy => arms.busy += 1,
            FaultKind::Unreachable => arms.unreachable += 1,
            FaultKind::Misconfiguration => arms.misconfigured += 1,
            FaultKind::Withdrawal => arms.withdraw = armed,
            FaultKind::WatchLoss => arms.watch_loss += 1,
            FaultKind::WatchDuplicate => arms.watch_duplicate += 1,
            FaultKind::WatchDelay => arms.watch_delay = armed,
            FaultKind::LateWake => arms.late_wake = armed,
            FaultKind::LateWrite => self.delay_a_write(index, armed),
            FaultKind::PartitionBothWays
            | FaultKind::PartitionToStore
            | FaultKind::PartitionFromStore
            | FaultKind::Crash
            | FaultKind::Twin
            | FaultKind::PauseShort
            | FaultKind::PausePastTtl
            | FaultKind::Suspend
            | FaultKind::FrozenClock
            | FaultKind::WatchGap => self.befall_process(kind, slot, size),
            FaultKind::RateDrift => self.befall_rate(target as usize % (candidates + 1), size),
            FaultKind::StoreStepForward => self.befall_clock(kind, size, 1),
            FaultKind::StoreStepBack => self.befall_clock(kind, size, -1),
            FaultKind::StoreFailover
            | FaultKind::FailoverRefresh
            | FaultKind::TailLoss
            | FaultKind::StoreWipe
            | FaultKind::StoreRestore => self.fail_over(kind, target, size),
            FaultKind::SlowStore => {
                self.network.slow_until = self.now + part(self.plan.ttl_longest, size, 50, 800);
                self.struck(kind);
            }
            FaultKind::Herd => self.herd(index),
            FaultKind::ForcedRelease => self.force_release(index),
            FaultKind::AskedToStepDown => self.ask_to_step_down(index),
            FaultKind::StaleRead => {
                arms.stale_read += 1;
                self.act_on_the_past(index);
            }
            FaultKind::StuckWork => self.stick(index, size),
            FaultKind::DelayedDeletion => self.lull(index, size),
            // These are not planned: they follow from others.
            FaultKind::Restart | FaultKind::OtherTtl | FaultKind::ShortOutage => {}
        }
    }

    fn befall_process(&mut self, kind: FaultKind, slot: u8, size: u32) {
        let ttl = self.plan.ttl_longest;
        let process = &mut self.processes[usize::from(slot)];
        if process.engine.is_none() {
            return;
        }
        let instance = process.instance;
        match kind {
            FaultKind::PartitionBothWays => {
                self.cut(slot, Reach::Cut, Reach::Cut, part(ttl, size, 50, 2_500))
            }
            FaultKind::PartitionToStore => {
                self.cut(slot, Reach::Cut, Reach::Open, part(ttl, size, 50, 2_500))
            }
            FaultKind::PartitionFromStore => {
                self.cut(slot, Reach::Open, Reach::Cut, part(ttl, size, 50, 2_500))
            }
            FaultKind::Crash => {
                self.kill(slot);
                let at = self.now + 10_000_000 + part(ttl, size, 0, 1_500);
                self.queue.plan(at, Happening::Starts { slot, instance });
            }
            FaultKind::Twin => return self.start_twin(slot, size),
            FaultKind::PauseShort => self.freeze(slot, part(ttl, size, 10, 950)),
            FaultKind::PausePastTtl => self.freeze(slot, part(ttl, size, 1_050, 3_000)),
            FaultKind::Suspend => {
                process.connection += 1;
                process.watch = WatchState::Off;
                self.freeze(slot, part(ttl, size, 50, 2_500));
            }
            FaultKind::FrozenClock => {
                if process.is_frozen(self.now) {
                    return;
                }
                process.clock_frozen_at = Some(self.now);
                self.freeze(slot, part(ttl, size, 300, 3_000));
            }
            FaultKind::WatchGap => {
                if process.watch != WatchState::On {
                    return;
                }
                self.break_watch(slot);
            }
            _ => return,
        }
        self.struck(kind);
    }

    fn start_twin(&mut self, of: u8, size: u32) {
        let first = usize::from(self.plan.candidates);
        let free = (first..self.processes.len()).find(|slot| self.processes[*slot].engine.is_none());
        let Some(slot) = free else { return };
        self.processes[slot].id = self.processes[usize::from(of)].id.clone();
        let slot = u8::try_from(slot).expect("few processes");
        self.start(slot);
        let instance = self.processes[usize::from(slot)].instance;
        let at = self.now + part(self.plan.ttl_longest, size, 500, 4_000);
        self.queue.plan(at, Happening::TwinEnds { slot, instance });
        self.struck(FaultKind::Twin);
    }

    fn befall_rate(&mut self, whom: usize, size: u32) {
        let edge = self.plan.rate_error_ppm;
        let edge = if self.plan.broken == Some(Broken::Rate) {
            (edge + 1_000) * 20
        } else {
            edge
        };
        let rate = match size % 4 {
            0 => 0,
            1 => -edge,
            _ => edge,
        };
        if whom == usize::from(self.plan.candidates) {
            if self.plan.store.kind == StoreKind::Observed {
                return;
            }
            self.store
                .clock
                .set_rate(self.now, rate.min(self.plan.rate_error_ppm));
            self.store_clock_changed();
        } else {
            let slot = u8::try_from(whom).expect("few candidates");
            if self.processes[whom].clock_frozen_at.is_some() {
                return;
            }
            self.drift(slot, rate);
        }
        // A clock that runs right again is no fault.
        if rate != 0 {
            self.struck(FaultKind::RateDrift);
        }
    }

    /// Kills the leader; when its lease expires, everybody is told at once that it is free.
    fn herd(&mut self, index: usize) {
        let Some(slot) = self.leader_of(index) else { return };
        let view = &self.leases[index];
        if slot >= self.plan.candidates || view.expires_real <= self.now || view.truth.is_none() {
            return;
        }
        let instance = self.processes[usize::from(slot)].instance;
        let at = view.expires_real;
        self.kill(slot);
        self.queue.plan(
            at + 1,
            Happening::HerdLooks {
                name: u8::try_from(index).expect("few names"),
            },
        );
        self.queue
            .plan(at + 100_000_000, Happening::Starts { slot, instance });
    }

    pub(super) fn herd_looks(&mut self, name: u8) {
        let Some(truth) = self.leases[usize::from(name)].truth else {
            return;
        };
        let stands_by = |process: &super::process::Process| {
            process.engine.is_some() && process.seats[usize::from(name)].hints.is_standing_by()
        };
        if self.processes.iter().any(stands_by) {
            self.struck(FaultKind::Herd);
        }
        for slot in 0..self.processes.len() {
            let instance = self.processes[slot].instance;
            let slot = u8::try_from(slot).expect("few processes");
            let change = tenure_core::Change::Vacated;
            let token = truth.token;
            self.queue.plan(
                self.now,
                Happening::Hint {
                    slot,
                    instance,
                    name,
                    change,
                    token,
                },
            );
        }
    }

    /// The process that works in a term of this lease.
    fn leader_of(&self, index: usize) -> Option<u8> {
        let leads = |process: &super::process::Process| process.seats[index].work.token != 0;
        let slot = self.processes.iter().position(leads)?;
        u8::try_from(slot).ok()
    }

    fn stick(&mut self, index: usize, size: u32) {
        let Some(slot) = self.leader_of(index) else { return };
        let seat = &mut self.processes[usize::from(slot)].seats[index];
        let whole = seat.gate + self.plan.ttl_longest;
        seat.work.stuck_until = self.now + part(whole, size, 500, 2_500);
        self.struck(FaultKind::StuckWork);
        self.tell(|| format!("the work of c{slot} is stuck"));
    }

    fn delay_a_write(&mut self, index: usize, armed: u16) {
        let slot = self.leader_of(index).unwrap_or(0);
        self.processes[usize::from(slot)].arms.late_write = armed;
    }

    /// Nobody wants the lease for a while; then its record is cleaned up.
    fn lull(&mut self, index: usize, size: u32) {
        let length = part(self.plan.ttl_longest, size, 1_200, 2_500);
        self.lull_until = self.now + length;
        let name = u8::try_from(index).expect("few names");
        self.queue
            .plan(self.lull_until - 1_000_000, Happening::CleansUp { name });
        for slot in 0..self.processes.len() {
            let slot = u8::try_from(slot).expect("few processes");
            let seat = &self.processes[usize::from(slot)].seats[index];
            let token = seat.work.token;
            if token != 0 {
                self.end_work_soon(slot, index, token);
            } else if self.processes[usize::from(slot)].engine.is_some()
                && !self.processes[usize::from(slot)].is_frozen(self.now)
            {
                let name = self.names[index].clone();
                self.command(slot, Command::Withdraw { name });
            }
        }
    }

    pub(super) fn cleans_up(&mut self, name: u8) {
        let index = usize::from(name);
        if self.calm != super::Calm::Faults || self.network.is_down(self.now) {
            return;
        }
        let lease_name = self.names[index].clone();
        if self.store.clean_up(index, self.now) {
            self.struck(FaultKind::DelayedDeletion);
            self.tell(|| format!("the record of {lease_name} is cleaned up"));
            self.leases[index].tokens.forgot();
            self.leases[index].exclusivity.forget();
            self.record_changed(index);
            self.tell_watches();
        }
    }

    /// Whatever makes the next wake-up of this process late.
    pub(super) fn be_late(&mut self, slot: u8) {
        let ttl = nanoseconds(self.processes[usize::from(slot)].timing.ttl().duration());
        let process = &mut self.processes[usize::from(slot)];
        let late = std::mem::take(&mut process.arms.late_wake);
        if late > 0 {
            process.late = part(ttl, u32::from(late), 5, 600);
            self.struck(FaultKind::LateWake);
        }
    }

    /// A process whose withdrawal is due does so soon after it has asked for the lease.
    pub(super) fn withdraw_soon(&mut self, slot: u8, index: usize) {
        let process = &mut self.processes[usize::from(slot)];
        let size = std::mem::take(&mut process.arms.withdraw);
        if size == 0 {
            return;
        }
        // What it asked for may be taken all the same: nobody says so, or an error that is told after the
        // withdrawal.
        match size % 4 {
            1 => process.arms.lose_reply += 1,
            3 => process.arms.cut_after = 1_023,
            _ => {}
        }
        let (instance, timeout) = (process.instance, nanoseconds(process.timing.request_timeout()));
        let at = self.now + part(timeout, u32::from(size), 1, 700);
        let name = u8::try_from(index).expect("few names");
        self.queue.plan(at, Happening::Withdraws { slot, instance, name });
    }
}
