//! What the driver of an engine does: it steps it, sends what it asks for, passes on what happens, and
//! sleeps.

use super::World;
use super::happening::Happening;
use super::process::{Ending, NEVER, SeatView};
use crate::faults::FaultKind;
use crate::invariants::{
    Believed, Extension, Verdict, belief_never_extends_late, campaign_end_is_a_misconfiguration,
    doubt_comes_in_time, end_has_a_reason, engine_sleeps, late_grant_begins_no_term, nothing_is_left,
    nothing_is_under_way, release_is_prompt, release_is_seen_through, stuck_work_ends, twin_is_told,
};
use crate::plan::{NAMES_MAX, StoreKind, nanoseconds};
use crate::sometimes::Sometimes;
use crate::stores::MILLISECOND;
use tenure_core::{
    Cause, Command, Departure, Event, Input, LeaseName, Moment, Operation, Released, Request, Ttl,
};

/// What a step left.
#[derive(Clone, Copy)]
enum Leaves {
    Nothing,
    /// The term with this token was given back.
    Term(u64),
    /// The term with this token was given back, and another in the process goes on with the lease.
    HandedOn(u64),
    /// A campaign that was to take the lease from the term with this token, and did not.
    Heir(u64),
    /// A withdrawn campaign.
    Campaign,
}

/// What the answer that is stepped with granted, for each lease.
pub(super) type Extensions = [Option<Extension>; NAMES_MAX];

impl World<'_> {
    /// Steps a living process's engine, and does what it wants.
    pub(super) fn step(&mut self, slot: u8, input: Input, extensions: &Extensions) {
        let now = self.now;
        let process = &mut self.processes[usize::from(slot)];
        let Some(engine) = process.engine.as_mut() else {
            return;
        };
        let local = process.clock.shown(now);
        process.stepped_local = local;
        let hands_on = matches!(input, Input::Command(Command::HandOn { .. }));
        let actions = engine.step(Moment::from_nanos(local), input);
        let (told, asked) = (actions.events.len() as u64, actions.requests.len() as u64);
        let mut ended = [Leaves::Nothing; NAMES_MAX];
        for event in actions.events {
            match &event {
                Event::Ended {
                    name,
                    token,
                    cause: Cause::GivenBack,
                } => {
                    let index = self.name_index(name);
                    ended[index] = if hands_on {
                        self.processes[usize::from(slot)].seats[index].heir_of = token.number();
                        Leaves::HandedOn(token.number())
                    } else {
                        Leaves::Term(token.number())
                    };
                }
                Event::Withdrawn { name } | Event::CampaignEnded { name, .. } => {
                    let index = self.name_index(name);
                    let seat = &mut self.processes[usize::from(slot)].seats[index];
                    let settled = nothing_is_under_way(seat.asking_until, local);
                    ended[index] = match std::mem::take(&mut seat.heir_of) {
                        0 if matches!(event, Event::Withdrawn { .. }) => Leaves::Campaign,
                        0 => Leaves::Nothing,
                        token => Leaves::Heir(token),
                    };
                    self.judge(settled);
                }
                Event::Departed { name, departure, .. } => {
                    self.heir_is_told(slot, name, departure);
                    self.judge_departure(slot, local, name, departure);
                }
                _ => {}
            }
            self.take_in(slot, local, event, extensions);
        }
        for (index, extension) in extensions.iter().enumerate().take(self.names.len()) {
            self.take_in_belief(slot, index, local, *extension);
        }
        self.judge_leaving(slot, &ended, &actions.requests);
        for request in actions.requests {
            self.send(slot, local, request);
        }
        let wake = actions.wake.map_or(NEVER, |wake| wake.at.as_nanos());
        self.outcome
            .trace(told ^ asked << 8 ^ wake << 16 ^ u64::from(slot) << 4);
        if wake != NEVER {
            self.judge(engine_sleeps(local, wake));
        }
        self.judge_sleep(slot, local, wake);
        self.processes[usize::from(slot)].wake_local = wake;
        self.plan_wake(slot);
    }

    /// Whether nothing that is to be done for a lease is slept through.
    fn judge_sleep(&mut self, slot: u8, local: u64, wake: u64) {
        let grace = nanoseconds(self.processes[usize::from(slot)].timing.grace());
        for index in 0..self.names.len() {
            let seat = &mut self.processes[usize::from(slot)].seats[index];
            let followed = seat.hints.sleeps(local, wake);
            let tried = seat.retries.sleeps(local, wake);
            let (believed, doubted) = (seat.believed, seat.doubted);
            let told = doubt_comes_in_time(believed, doubted == believed.token, grace, local, wake);
            self.judge(followed);
            self.judge(tried);
            self.judge(told);
        }
    }

    /// Whether who gives up giving a lease back had tried for as long as it mattered.
    fn judge_departure(&mut self, slot: u8, local: u64, name: &LeaseName, departure: &Departure) {
        let index = self.name_index(name);
        let process = &mut self.processes[usize::from(slot)];
        let retry_every = nanoseconds(process.timing.retry_every());
        let seat = &mut process.seats[index];
        let until = std::mem::take(&mut seat.left_until);
        let failed = seat.retries.has_failed(local);
        seat.retries.ends();
        if let Departure::Unconfirmed { error, .. } = departure
            && failed
            && !error.fault.ends_a_release()
        {
            self.judge(release_is_seen_through(local, retry_every, until));
        }
    }

    /// Whether who leaves a lease gives it back in the same step.
    fn judge_leaving(&mut self, slot: u8, left: &[Leaves; NAMES_MAX], requests: &[Request]) {
        for (index, left) in left.iter().enumerate().take(self.names.len()) {
            let name = &self.names[index];
            let releasing = || {
                requests.iter().any(|request| match &request.operation {
                    Operation::Release(releases) => releases.iter().any(|release| release.name == *name),
                    Operation::Acquire(_) | Operation::Renew(_) | Operation::Look(_) => false,
                })
            };
            let asking = || {
                requests.iter().any(
                    |request| matches!(&request.operation, Operation::Acquire(acquire) if acquire.name == *name),
                )
            };
            let verdict = match *left {
                Leaves::Nothing => continue,
                Leaves::Term(token) => release_is_prompt(token, releasing()),
                Leaves::HandedOn(token) => release_is_prompt(token, asking()),
                Leaves::Heir(token) => {
                    let verdict = release_is_prompt(token, releasing());
                    self.processes[usize::from(slot)].seats[index].withdrew_at = 0;
                    self.saw(Sometimes::HeirLeft);
                    verdict
                }
                Leaves::Campaign => {
                    let (process, view) = (&self.processes[usize::from(slot)], &self.leases[index]);
                    let seat = &process.seats[index];
                    let seen = seat.withdrew_at != 0 && view.granted_at <= seat.withdrew_at;
                    let told = !self.reads_may_lag()
                        && self.plan.store.granted_percent <= 100
                        // Where a fail-over lends a lease another ttl, it outlives the search for it.
                        && !self.plan.store.refreshes_at_failover
                        && self.outcome.faults.of(FaultKind::Misconfiguration) == 0;
                    let holder = (u64::from(process.instance), seat.rotates.latest());
                    // It does not search on for what has expired by the time of its next look; clocks differ
                    // a little.
                    let soon_ms = nanoseconds(process.timing.retry_every()) / MILLISECOND;
                    let clock_ms = self.store.clock_ms(self.now) + soon_ms + soon_ms / 8;
                    let releasing = releasing();
                    let verdict = if seen && told {
                        nothing_is_left(view.truth, holder, clock_ms, releasing)
                    } else {
                        Ok(())
                    };
                    self.processes[usize::from(slot)].seats[index].withdrew_at = 0;
                    verdict
                }
            };
            self.judge(verdict);
        }
    }

    /// The term before is over: by the attempt of the campaign that was to go on with the lease, if there is
    /// one.
    fn heir_is_told(&mut self, slot: u8, name: &LeaseName, departure: &Departure) {
        let index = self.name_index(name);
        let seat = &mut self.processes[usize::from(slot)].seats[index];
        let heir = std::mem::take(&mut seat.heir_of) != 0;
        if heir && matches!(departure, Departure::Answered(Released::Vacated)) {
            self.saw(Sometimes::HandedOn);
        }
    }

    /// Steps with something that grants nothing.
    pub(super) fn command(&mut self, slot: u8, command: Command) {
        let now = self.now;
        match &command {
            Command::Withdraw { name } => {
                let seat = self.seat_of(slot, name);
                seat.hints.ends();
                // What is under way by now is looked for at once when it fails.
                seat.retries.ends();
                seat.wanted.ends();
                if seat.withdrew_at == 0 {
                    seat.withdrew_at = now;
                }
            }
            Command::Campaign { name, .. } | Command::HandOn { name, .. } => {
                self.seat_of(slot, name).wanted.wants();
            }
            Command::StepDown { name, token } => self.seat_of(slot, name).ending = token.number(),
            _ => {}
        }
        self.step(slot, Input::Command(command), &Extensions::default());
    }

    fn seat_of(&mut self, slot: u8, name: &LeaseName) -> &mut SeatView {
        let index = self.name_index(name);
        &mut self.processes[usize::from(slot)].seats[index]
    }

    pub(super) fn plan_wake(&mut self, slot: u8) {
        let now = self.now;
        let process = &mut self.processes[usize::from(slot)];
        if process.wake_local == NEVER {
            return;
        }
        let at = process.clock.real_at(process.wake_local).max(now) + process.late;
        if at < process.wake_planned {
            process.wake_planned = at;
            let instance = process.instance;
            self.queue.plan(at, Happening::Wake { slot, instance });
        }
    }

    pub(super) fn wake(&mut self, slot: u8, instance: u32) {
        let now = self.now;
        let process = &mut self.processes[usize::from(slot)];
        if !process.is(instance) || process.wake_planned != now {
            return;
        }
        if process.is_frozen(now) {
            // It wakes when it goes on.
            process.wake_planned = NEVER;
            return;
        }
        process.wake_planned = NEVER;
        if process.clock.shown(now) < process.wake_local {
            self.plan_wake(slot);
            return;
        }
        process.late = 0;
        self.be_late(slot);
        self.step(slot, Input::Tick, &Extensions::default());
    }

    fn take_in_belief(&mut self, slot: u8, index: usize, local: u64, extension: Option<Extension>) {
        let process = &mut self.processes[usize::from(slot)];
        let Some(engine) = process.engine.as_ref() else {
            return;
        };
        let before = process.seats[index].believed;
        let after = match engine.belief(&self.names[index]) {
            None if before.token == 0 => return,
            None => Believed::default(),
            Some(belief) => {
                let (token, until_local) = (belief.token.number(), belief.until.as_nanos());
                if (token, until_local) == (before.token, before.until_local) {
                    return;
                }
                let until_real = process.clock.real_at(until_local);
                Believed {
                    token,
                    until_local,
                    until_real,
                }
            }
        };
        process.seats[index].believed = after;
        let seat = process.seats[index];
        let renew_every = nanoseconds(process.timing.renew_every());
        self.judge(belief_never_extends_late(before, after, extension, local));
        if after.token != 0 {
            self.judge(seat.once.believes(after.token));
            if seat.gate != 0 {
                let ttl = self.plan.ttl_longest;
                let progress = seat.work.progress_local;
                self.judge(stuck_work_ends(
                    after.until_local,
                    progress,
                    seat.gate,
                    renew_every,
                    ttl,
                ));
            }
            self.judge_belief(slot, index);
        }
    }

    fn take_in(&mut self, slot: u8, local: u64, event: Event, extensions: &Extensions) {
        self.narrate_event(slot, &event);
        match event {
            Event::Acquired {
                name, grant, until, ..
            } => {
                self.judge(late_grant_begins_no_term(until.as_nanos(), local));
                let index = self.name_index(&name);
                self.term_begins(slot, index, grant.token.number(), local);
            }
            Event::Ended { name, token, cause } => {
                let index = self.name_index(&name);
                self.term_ends(slot, index, token.number(), local, &cause, extensions[index]);
            }
            Event::Standby { lease, twin } => {
                let index = self.name_index(&lease.name);
                let process = &mut self.processes[usize::from(slot)];
                let verdict = process.seats[index].told.told(lease.token.number());
                let engine = process.engine.as_ref().expect("it was stepped");
                let told = twin_is_told(engine.candidate(), &lease, twin);
                self.judge_told(index, verdict);
                self.judge(told);
                if twin {
                    self.saw(Sometimes::TwinSeen);
                }
                self.watch_on(slot);
            }
            Event::AttemptFailed { .. } => self.watch_on(slot),
            Event::CampaignEnded { name, error } => {
                self.saw(Sometimes::CampaignEnded);
                self.judge(campaign_end_is_a_misconfiguration(&error));
                self.give_up_attempt(slot, &name);
                self.campaign_later(slot, &name);
            }
            Event::Withdrawn { name } => {
                self.give_up_attempt(slot, &name);
                self.campaign_later(slot, &name);
            }
            Event::Doubted { name, token, .. } => {
                self.seat_of(slot, &name).doubted = token.number();
                self.saw(Sometimes::Doubted);
            }
            Event::Reassured { name, .. } => {
                self.seat_of(slot, &name).doubted = 0;
                self.saw(Sometimes::Reassured);
            }
            Event::AskedToStepDown { name, token } => {
                let index = self.name_index(&name);
                self.processes[usize::from(slot)].seats[index].ending = token.number();
                self.end_work_soon(slot, index, token.number());
            }
            Event::Departed { name, departure, .. } => {
                if matches!(departure, Departure::Unconfirmed { .. }) {
                    self.saw(Sometimes::ReleaseUnconfirmed);
                }
                self.campaign_later(slot, &name);
            }
            Event::Renewed { .. }
            | Event::RenewalFailed { .. }
            | Event::Stuck { .. }
            | Event::ReleaseFailed { .. } => {}
        }
    }

    /// Whether what decides may be read from the past: then nobody can be told the latest.
    fn reads_may_lag(&self) -> bool {
        self.plan.store.kind == StoreKind::Observed && self.plan.store.reads_lag
    }

    /// Where tokens are not promised to rise any more, nobody is promised to be told of rising ones.
    fn judge_told(&mut self, index: usize, verdict: Verdict) {
        if self.leases[index].tokens.promised() && !self.reads_may_lag() {
            self.judge(verdict);
        }
    }

    fn give_up_attempt(&mut self, slot: u8, name: &LeaseName) {
        let index = self.name_index(name);
        let seat = &mut self.processes[usize::from(slot)].seats[index];
        seat.hints.ends();
        seat.retries.ends();
        seat.rotates.given_up();
    }

    fn term_begins(&mut self, slot: u8, index: usize, token: u64, local: u64) {
        self.outcome.terms += 1;
        let lapsed = !self.leases[index].tokens.promised();
        self.outcome.lapsed_terms += u64::from(lapsed);
        if lapsed || !self.assumptions.all_hold() {
            self.outcome.fence_only_terms += 1;
        }
        let seat = &mut self.processes[usize::from(slot)].seats[index];
        let new = seat.once.is_new(token);
        let once = seat.once.began(token);
        let told = seat.told.told(token);
        seat.rotates.began();
        seat.hints.ends();
        seat.wanted.ends();
        (seat.doubted, seat.ending) = (0, 0);
        seat.withdrew_at = 0;
        seat.release.began(token);
        if self.leases[index].tokens.promised() {
            self.judge(new);
        }
        self.judge(once);
        self.judge_told(index, told);
        self.begin_work(slot, index, token, local);
        self.watch_on(slot);
    }

    fn term_ends(
        &mut self,
        slot: u8,
        index: usize,
        token: u64,
        local: u64,
        cause: &Cause,
        extension: Option<Extension>,
    ) {
        let process = &mut self.processes[usize::from(slot)];
        let holder = u64::from(process.instance);
        let seat = &mut process.seats[index];
        let once = seat.once.ended(token);
        // The store may just have told it that less is left than it believed.
        let granted = extension.map_or(NEVER, |granted| {
            let ttl = Ttl::from_millis(granted.ttl / MILLISECOND).expect("a store granted it");
            granted.sent_local + nanoseconds(process.timing.trust(ttl))
        });
        let left = seat.believed.until_local.min(granted).saturating_sub(local);
        if matches!(cause, Cause::GivenBack) {
            seat.left_until = seat.believed.until_local;
        }
        // Work whose term ended under it stops at its next look at the authority: no release follows.
        seat.work.token = 0;
        seat.work.serial += 1;
        seat.work.ending = Ending::No;
        self.judge(once);
        let view = &self.leases[index];
        // Who reads the past may find no record yet; whatever term it finds there instead of its own is an
        // earlier one.
        let is_told = !self.reads_may_lag() || matches!(cause, Cause::Succeeded { .. });
        if !view.forced.contains(&token) && is_told {
            let clock_ms = self.store.clock_ms(self.now);
            self.judge(end_has_a_reason(
                cause,
                (holder, token),
                view.truth,
                clock_ms,
                left,
            ));
        }
        self.saw(match cause {
            Cause::GivenBack => Sometimes::EndedGivenBack,
            Cause::Succeeded { .. } => Sometimes::EndedSucceeded,
            Cause::Vanished => Sometimes::EndedVanished,
            Cause::Deadline(_) => Sometimes::EndedDeadline,
            Cause::NoProgress(_) => Sometimes::EndedNoProgress,
            Cause::MaxHold(_) => unreachable!("no campaign here has a longest hold"),
        });
        if !matches!(cause, Cause::GivenBack) {
            let name = self.names[index].clone();
            self.campaign_later(slot, &name);
        }
    }
}
