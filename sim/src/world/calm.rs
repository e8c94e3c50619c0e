//! After the faults: everything heals, and what is promised of the time after must hold.

use super::happening::Happening;
use super::process::{Arms, Ending, NEVER, Reach, UnderWay, WatchState};
use super::{Calm, World};
use crate::faults::FaultKind;
use crate::invariants::{Role, leader_exists, leader_is_stable, outage_is_survived, request_budget};
use crate::plan::{Grants, StoreKind, nanoseconds};
use crate::sometimes::Sometimes;
use std::time::Duration;
use tenure_core::Timing;

/// Longest pause of a campaign between two tries on a store that fails, as `Timing` is documented: at most
/// the ttl and this.
const BACK_OFF_MAX: u64 = 10_000_000_000;

/// Short outages of one run.
const OUTAGES: u32 = 2;

impl World<'_> {
    /// No fault comes from now on, and everything that is broken is mended.
    pub(super) fn begin_calm(&mut self) {
        self.calm = Calm::Healing;
        self.lose_everything();
        self.lull_until = 0;
        self.coming = super::outage::Return::default();
        self.tell(|| "the faults are over".to_owned());
        let most = self.plan.latency.most;
        for number in 0..self.processes.len() {
            let slot = u8::try_from(number).expect("few processes");
            if number >= usize::from(self.plan.candidates) {
                self.kill(slot);
                continue;
            }
            if self.processes[number].engine.is_none() {
                self.start(slot);
            }
            let process = &mut self.processes[number];
            process.arms = Arms::default();
            (process.cut_to, process.cut_from) = (Reach::Open, Reach::Open);
            process.late = 0;
            process.watch = WatchState::Off;
            process.frozen_until = self.now;
            self.resume(slot);
            self.unstick(slot);
            let process = &mut self.processes[number];
            process.watch = WatchState::Starting;
            let instance = process.instance;
            self.queue
                .plan(self.now + 2 * most, Happening::WatchBegins { slot, instance });
            for name in 0..self.plan.names {
                self.queue
                    .plan(self.now + 1, Happening::Campaigns { slot, instance, name });
            }
        }
        let last_fault = self.now.max(self.last_late_write);
        self.queue
            .plan(last_fault + self.healed_within(), Happening::MustLead);
    }

    /// Work that hangs goes on; work that was not to end goes on for ever.
    fn unstick(&mut self, slot: u8) {
        for index in 0..self.names.len() {
            let work = &mut self.processes[usize::from(slot)].seats[index].work;
            work.stuck_until = 0;
            if work.ends_at > self.now {
                work.ends_at = NEVER;
            }
            if work.token != 0 && work.under_way == UnderWay::Nothing && work.ending == Ending::No {
                // What was planned for it is void: it goes on now.
                work.serial += 1;
                let (name, serial) = (u8::try_from(index).expect("few names"), work.serial);
                self.queue
                    .plan(self.now + 1, Happening::Works { slot, name, serial });
            }
        }
    }

    /// By when somebody must lead after the last fault: a request of then is given up and tried again after
    /// the longest back-off; the lease of a holder that is gone lasts for one ttl more at most, and `explain`
    /// promises the rest.
    fn healed_within(&self) -> u64 {
        let candidates = &self.plan.timings[..usize::from(self.plan.candidates)];
        let longest = |of: &dyn Fn(&Timing) -> u64| candidates.iter().map(of).max().unwrap_or(0);
        let takeover = longest(&|timing| nanoseconds(timing.explain().takeover_after_crash));
        let timeout = longest(&|timing| nanoseconds(timing.request_timeout()));
        let retry = longest(&|timing| nanoseconds(timing.retry_every()));
        let asked = longest(&|timing| nanoseconds(timing.ttl().duration()));
        let granted_beyond = self.plan.ttl_longest - asked.min(self.plan.ttl_longest);
        let back_off = BACK_OFF_MAX.min(asked).max(retry);
        let watch = 2 * self.plan.latency.most;
        // Where nobody judges expiry, the last sign of life is seen at the next look, up to one ttl later.
        let observed = match self.plan.store.kind {
            StoreKind::ServerClock => 0,
            StoreKind::Observed => self.plan.ttl_longest + self.plan.ttl_longest / 20,
        };
        takeover + observed + granted_beyond + timeout + retry + back_off + 4 * watch + asked / 100
    }

    /// The token that somebody believes in now, for each lease: somebody must.
    pub(super) fn must_lead(&mut self) {
        for index in 0..self.names.len() {
            let leader = self.believed_now(index);
            let within = Duration::from_nanos(self.healed_within());
            self.leases[index].leader = leader;
            // An erratic store may end the term of whoever leads in this very moment.
            if self.plan.store.grants != Grants::Erratic {
                self.judge(leader_exists(leader, within));
            }
        }
        let all_led = self.leases[..self.names.len()]
            .iter()
            .all(|view| view.leader != 0);
        if all_led && self.outcome.violation.is_none() && self.assumptions.all_hold() {
            self.saw(Sometimes::Healed);
        }
        self.calm = Calm::Quiet;
        for process in &mut self.processes {
            process.sent = 0;
        }
        let quiet = 2 * self.plan.ttl_longest + self.plan.ttl_longest / 2;
        self.queue.plan(self.now + quiet, Happening::QuietEnds);
    }

    fn believed_now(&self, index: usize) -> u64 {
        let believers = self.processes.iter().map(|process| process.seats[index].believed);
        believers
            .filter(|believed| believed.at(self.now))
            .map(|believed| believed.token)
            .next()
            .unwrap_or(0)
    }

    pub(super) fn quiet_ends(&mut self) {
        for index in 0..self.names.len() {
            let leader = self.believed_now(index);
            if self.plan.store.grants != Grants::Erratic {
                self.judge(leader_is_stable(self.leases[index].leader, leader));
            }
        }
        if self.outages == 0 {
            self.judge_requests();
        }
        let Some(outage) = self.outage() else {
            self.queue.plan(self.now, Happening::Ends);
            return;
        };
        self.struck(FaultKind::ShortOutage);
        self.last_outage = outage;
        self.tell(|| format!("the store is silent for {:?}", Duration::from_nanos(outage)));
        self.network.absence = super::network::Absence::Silent;
        self.network.down_until = self.now + outage;
        self.queue
            .plan(self.now + outage + self.plan.ttl_longest, Happening::OutageJudged);
    }

    /// How long the store may be silent without any leader losing its lease; `None` where too little is
    /// promised to be told from a moment.
    fn outage(&mut self) -> Option<u64> {
        if !self.grants_what_is_asked() || !self.assumptions.all_hold() {
            return None;
        }
        let leaders = self
            .processes
            .iter()
            .filter(|process| (0..self.names.len()).any(|index| process.seats[index].believed.at(self.now)));
        let promised = leaders
            .map(|process| nanoseconds(process.timing.explain().outage_survived))
            .min()?;
        let slack = 8 * self.plan.latency.most + 2_000_000 + promised / 10_000 * 2;
        let rate = u64::try_from(self.plan.rate_error_ppm).unwrap_or(0);
        let most = promised.checked_sub(slack + self.plan.ttl_longest / 1_000_000 * rate)?;
        (most > 0).then(|| self.chance.between(most / 2, most))
    }

    pub(super) fn outage_judged(&mut self) {
        let mut survived = true;
        for index in 0..self.names.len() {
            let leader = self.believed_now(index);
            survived &= leader == self.leases[index].leader;
            let outage = Duration::from_nanos(self.last_outage);
            self.judge(outage_is_survived(self.leases[index].leader, leader, outage));
        }
        if survived {
            self.saw(Sometimes::OutageSurvived);
        }
        self.outages += 1;
        let next = if self.outages < OUTAGES {
            Happening::QuietEnds
        } else {
            Happening::Ends
        };
        self.queue.plan(self.now, next);
    }

    /// Who asked how often while nothing happened.
    fn judge_requests(&mut self) {
        let candidates = usize::from(self.plan.candidates);
        let timing = self.plan.timings[0];
        let alike = self.plan.timings[..candidates]
            .iter()
            .all(|other| *other == timing);
        if !alike || self.names.len() > 1 || !self.grants_what_is_asked() {
            return;
        }
        let during = 2 * self.plan.ttl_longest + self.plan.ttl_longest / 2;
        let (ttl, renew_every) = (
            nanoseconds(timing.ttl().duration()),
            nanoseconds(timing.renew_every()),
        );
        let spread = nanoseconds(timing.spread());
        let rate = u64::try_from(self.plan.rate_error_ppm).unwrap_or(0);
        // A look just after the expiry that was foreseen finds the lease renewed, if renewals come on their
        // grid to within half the spread.
        let jitter =
            self.plan.latency.most - self.plan.latency.least + ttl / 1_000_000 * rate * 3 + 2_000_000;
        let divides = ttl % renew_every < 10_000_000;
        let look = if divides && jitter < spread / 2 {
            ttl
        } else {
            (ttl - renew_every).saturating_sub(jitter)
        };
        for slot in 0..candidates {
            let process = &self.processes[slot];
            let leads = process.seats[0].believed.at(self.now);
            let (role, interval) = if leads {
                (Role::Leader, renew_every)
            } else {
                (Role::Standby, look)
            };
            let interval = interval - interval / 50;
            let sent = process.sent;
            self.judge(request_budget(
                role,
                sent,
                Duration::from_nanos(during),
                Duration::from_nanos(interval.max(1)),
            ));
        }
    }
}
