//! What a leader does: it claims the fence, reads, computes, asks whether it still leads, and writes.
//!
//! It asks `authority` before each step and never remembers the answer. A process that stands still between
//! that and its write is what the fence is for.

use super::happening::Happening;
use super::process::{Ending, NEVER, Stage, UnderWay, Work};
use super::{Calm, World};
use crate::faults::FaultKind;
use crate::invariants::authority_ends_at_the_deadline;
use crate::plan::{Flaw, nanoseconds};
use crate::register::{Access, Accessed, Subject, Verb};
use crate::sometimes::Sometimes;
use tenure_core::{Authority, Command, FencingToken, Horizon, Leases, Moment, Term, horizon};

/// How many of a thousand withdrawals that are due when a term is given back are of what is wanted again
/// meanwhile.
const WITHDRAWN_DURING_RELEASE_PER_MILLE: u64 = 300;

impl World<'_> {
    pub(super) fn begin_work(&mut self, slot: u8, index: usize, token: u64, local: u64) {
        let (now, plan) = (self.now, self.plan);
        let stage = if plan.store.flaw == Some(Flaw::ReadBeforeClaim) {
            Stage::Read
        } else {
            Stage::Claim
        };
        let process = &mut self.processes[usize::from(slot)];
        let length = process.dice.between(plan.work.term / 4, plan.work.term * 7 / 4);
        let ends_at = if self.calm == Calm::Faults {
            now + length
        } else {
            NEVER
        };
        let serial = process.seats[index].work.serial + 1;
        process.seats[index].work = Work {
            serial,
            token,
            stage,
            under_way: UnderWay::Nothing,
            ends_at,
            ending: Ending::No,
            stuck_until: 0,
            flawed_read: 0,
            progress_local: local,
        };
        let name = u8::try_from(index).expect("few names");
        self.queue.plan(now, Happening::Works { slot, name, serial });
    }

    /// The work of this term is to end as soon as it can.
    pub(super) fn end_work_soon(&mut self, slot: u8, index: usize, token: u64) {
        let work = &mut self.processes[usize::from(slot)].seats[index].work;
        if work.token == token && work.ending == Ending::No {
            work.ends_at = self.now;
            let (name, serial) = (u8::try_from(index).expect("few names"), work.serial);
            self.queue
                .plan(self.now + 1_000, Happening::Works { slot, name, serial });
        }
    }

    /// The next step of the work.
    pub(super) fn works(&mut self, happening: Happening, slot: u8, name: u8, serial: u32) {
        let index = usize::from(name);
        let now = self.now;
        let process = &mut self.processes[usize::from(slot)];
        let instance = process.instance;
        if process.seats[index].work.serial != serial || self.absent(happening, slot, instance) {
            return;
        }
        let process = &mut self.processes[usize::from(slot)];
        let work = &mut process.seats[index].work;
        if work.token == 0 || work.ending == Ending::Begun {
            return;
        }
        if now < work.stuck_until {
            self.queue.plan(work.stuck_until, happening);
            return;
        }
        if now >= work.ends_at {
            self.end_work(slot, name, serial);
            return;
        }
        let local = process.clock.shown(now);
        if process.seats[index].gate != 0 {
            self.progress(slot, index, local);
        }
        let process = &mut self.processes[usize::from(slot)];
        let Some(engine) = process.engine.as_ref() else {
            return;
        };
        let work = &mut process.seats[index].work;
        if work.serial != serial {
            return;
        }
        let authority = engine.authority(&self.names[index], Moment::from_nanos(local));
        let (working, believed) = (work.token, process.seats[index].believed);
        let answered = authority.token().map_or(0, FencingToken::number);
        self.judge(authority_ends_at_the_deadline(answered, believed, local));
        match authority {
            Authority::Held { .. } if answered == working => self.begin_step(slot, name, serial),
            Authority::Held { .. } | Authority::Doubtful { .. } | Authority::Ending { .. } => {
                self.think(slot, name, serial);
            }
            // The term is over; its end is told when the engine is stepped next.
            Authority::None => {}
        }
    }

    fn progress(&mut self, slot: u8, index: usize, local: u64) {
        let work = &mut self.processes[usize::from(slot)].seats[index].work;
        work.progress_local = local;
        let token = FencingToken::new(work.token).expect("a term's token");
        let (name, at) = (self.names[index].clone(), Moment::from_nanos(local));
        self.command(slot, Command::Progress { name, token, at });
    }

    fn think(&mut self, slot: u8, name: u8, serial: u32) {
        let think = self.plan.work.think;
        let process = &mut self.processes[usize::from(slot)];
        let ends_at = process.seats[usize::from(name)].work.ends_at;
        let mut at = self.now + process.dice.between(think / 2, think * 3 / 2).max(1_000_000);
        at = at.min(ends_at.max(self.now + 1_000_000));
        self.queue.plan(at, Happening::Works { slot, name, serial });
    }

    fn begin_step(&mut self, slot: u8, name: u8, serial: u32) {
        let latency = self.plan.latency;
        let compute = self.plan.work.compute;
        let process = &mut self.processes[usize::from(slot)];
        let instance = process.instance;
        let work = &mut process.seats[usize::from(name)].work;
        let verb = match work.stage {
            Stage::Claim => Verb::Claim,
            Stage::Read => Verb::Read,
            Stage::Write { saw } => Verb::Write { from: saw },
        };
        work.under_way = UnderWay::Access;
        let access = Access {
            slot,
            instance,
            name,
            serial,
            token: work.token,
            verb,
        };
        // What is held up is every fourth time the next claim, else the next write.
        let hits = match verb {
            Verb::Claim => process.arms.late_write % 4 == 3,
            Verb::Read => false,
            Verb::Write { .. } => process.arms.late_write % 4 != 3,
        };
        let late = if hits {
            std::mem::take(&mut process.arms.late_write)
        } else {
            0
        };
        if matches!(verb, Verb::Write { .. }) || late > 0 {
            // Between the check and the write there is always some time, and anything may happen in it.
            let mut at = self.now + 1 + process.dice.below(compute);
            if late > 0 {
                at += self.plan.ttl_longest * (200 + 2 * u64::from(late)) / 1000;
                self.last_late_write = self.last_late_write.max(at);
                self.struck(FaultKind::LateWrite);
            }
            let access = self.keep_access(access);
            self.queue.plan(at, Happening::WriteLeaves { access });
        } else {
            let at = self.now + process.dice.between(latency.least, latency.most);
            let access = self.keep_access(access);
            self.queue.plan(at, Happening::Accesses { access });
        }
    }

    fn keep_access(&mut self, access: Access) -> u32 {
        if let Some(place) = self.accesses_free.pop() {
            self.accesses[place as usize] = access;
            return place;
        }
        self.accesses.push(access);
        u32::try_from(self.accesses.len() - 1).expect("few accesses are under way")
    }

    /// A write leaves: nobody looks at the authority again.
    pub(super) fn write_leaves(&mut self, happening: Happening, access: u32) {
        let now = self.now;
        let latency = self.plan.latency;
        let Access { slot, instance, .. } = self.accesses[access as usize];
        let process = &mut self.processes[usize::from(slot)];
        if !process.is(instance) {
            self.accesses_free.push(access);
            return;
        }
        if process.is_frozen(now) {
            process.deferred.push(happening);
            return;
        }
        let at = now + process.dice.between(latency.least, latency.most);
        self.queue.plan(at, Happening::Accesses { access });
    }

    pub(super) fn accesses(&mut self, access: u32) {
        self.accesses_free.push(access);
        let access = self.accesses[access as usize];
        let index = usize::from(access.name);
        let rule = self.fence_rule();
        let horizon = self.horizon(index);
        let token = FencingToken::new(access.token).expect("a term's token");
        let subject = Subject {
            resource: &self.resource,
            term: &Term::new(self.names[index].clone(), token),
            horizon,
        };
        let view = &mut self.leases[index];
        let accessed = view.register.access(access, subject, rule);
        let promised = view.tokens.promised();
        let mark = view.register.mark();
        let mut next = None;
        match (accessed, access.verb) {
            (Accessed::Claimed, _) => {
                let verdict = view.fence.admitted(access.token);
                self.judge_fence(promised, verdict);
                let flawed = self.plan.store.flaw == Some(Flaw::ReadBeforeClaim);
                next = Some(if flawed { None } else { Some(Stage::Read) });
            }
            (Accessed::Saw(saw), _) => {
                let flawed = self.plan.store.flaw == Some(Flaw::ReadBeforeClaim);
                next = Some(Some(if flawed {
                    Stage::Claim
                } else {
                    Stage::Write { saw }
                }));
                if flawed {
                    self.remember_read(access, saw);
                }
            }
            (Accessed::Written(number), Verb::Write { from }) => {
                let current = view.truth.map_or(0, |truth| truth.token);
                let fence = view.fence.admitted(access.token);
                let update = view.updates.accepted(number, from, access.token);
                self.judge_fence(promised, fence);
                self.judge_fence(promised, update);
                self.saw(Sometimes::WriteAdmitted);
                if current != access.token {
                    self.saw(Sometimes::LateWriteAdmitted);
                }
                next = Some(Some(Stage::Read));
            }
            (Accessed::Refused, verb) if access.token < mark => {
                self.saw(if verb == Verb::Claim {
                    Sometimes::StaleClaimRefused
                } else {
                    Sometimes::StaleWriteRefused
                });
            }
            (Accessed::Refused | Accessed::Written(_), _) => {}
        }
        self.tell(|| {
            format!(
                "c{} {:?} with token {}: {accessed:?}, the mark is {mark}",
                access.slot, access.verb, access.token
            )
        });
        self.outcome.trace(mark ^ access.token << 1);
        self.work_goes_on(access, next);
    }

    /// What the fence knows of the tokens that exist: the record, if that is beside it and there, or its
    /// clock.
    fn horizon(&self, index: usize) -> Horizon {
        let view = &self.leases[index];
        let granted = match self.plan.leases {
            Leases::Here => view.truth.and_then(|truth| FencingToken::new(truth.token).ok()),
            Leases::Elsewhere => None,
        };
        match granted {
            Some(highest) => Horizon::Granted(highest),
            None => Horizon::Clock(horizon(self.store.clock_ms(self.now), view.register.marked())),
        }
    }

    fn judge_fence(&mut self, promised: bool, verdict: crate::invariants::Verdict) {
        if promised {
            self.judge(verdict);
        }
    }

    /// For the flaw of reading before claiming: what was read then is what is written from.
    fn remember_read(&mut self, access: Access, saw: u64) {
        let work = &mut self.processes[usize::from(access.slot)].seats[usize::from(access.name)].work;
        if work.serial == access.serial {
            work.stuck_until = 0;
            work.flawed_read = saw;
        }
    }

    fn work_goes_on(&mut self, access: Access, next: Option<Option<Stage>>) {
        let Access {
            slot, name, serial, ..
        } = access;
        let latency = self.plan.latency;
        let process = &mut self.processes[usize::from(slot)];
        let work = &mut process.seats[usize::from(name)].work;
        if work.serial != serial {
            return;
        }
        work.under_way = UnderWay::Nothing;
        let written = matches!(access.verb, Verb::Write { .. });
        match next {
            Some(Some(stage)) => work.stage = stage,
            Some(None) => {
                work.stage = Stage::Write {
                    saw: work.flawed_read,
                }
            }
            // Refused: the term is over, though the process may not know yet. The work waits for that.
            None => {}
        }
        if written || next.is_none() {
            self.think(slot, name, serial);
        } else {
            let at = self.now + process.dice.between(latency.least, latency.most);
            self.queue.plan(at, Happening::Works { slot, name, serial });
        }
    }

    /// Begins to end the work: the rest of it takes some part of the grace.
    fn end_work(&mut self, slot: u8, name: u8, serial: u32) {
        let process = &mut self.processes[usize::from(slot)];
        let work = &mut process.seats[usize::from(name)].work;
        work.ending = Ending::Begun;
        let token = FencingToken::new(work.token).expect("a term's token");
        let announced = process.dice.per_mille(500);
        let grace = nanoseconds(process.timing.grace());
        let rest = if announced {
            process.dice.below(grace.max(2) / 2)
        } else {
            0
        };
        self.queue
            .plan(self.now + rest + 1, Happening::WorkEnds { slot, name, serial });
        if announced {
            let name = self.names[usize::from(name)].clone();
            self.command(slot, Command::StepDown { name, token });
        }
    }

    pub(super) fn work_ends(&mut self, happening: Happening, slot: u8, name: u8, serial: u32) {
        let index = usize::from(name);
        let process = &mut self.processes[usize::from(slot)];
        let instance = process.instance;
        if process.seats[index].work.serial != serial || self.absent(happening, slot, instance) {
            return;
        }
        let seat = &mut self.processes[usize::from(slot)].seats[index];
        if seat.work.token == 0 {
            return;
        }
        let early = self.plan.store.flaw == Some(Flaw::ReleaseBeforeWorkEnded);
        if seat.work.under_way == UnderWay::Access && !early {
            // What is under way must have come back before the work has ended.
            self.queue.plan(self.now + self.plan.ttl_longest / 40, happening);
            return;
        }
        let token = seat.work.token;
        if !early {
            seat.release.ended(token);
        }
        let (name, token) = (
            self.names[index].clone(),
            FencingToken::new(token).expect("a term's token"),
        );
        let process = &mut self.processes[usize::from(slot)];
        if early || process.dice.below(1_000) >= self.plan.work.hands_on_per_mille {
            self.command(slot, Command::WorkEnded { name, token });
            let process = &mut self.processes[usize::from(slot)];
            if process.arms.withdraw > 0 && process.dice.per_mille(WITHDRAWN_DURING_RELEASE_PER_MILLE) {
                process.arms.withdraw = 0;
                let name = u8::try_from(index).expect("few names");
                self.wanted_meanwhile(slot, instance, name, 1_000);
            }
            return;
        }
        let seat = &process.seats[index];
        let progress_within = (seat.gate != 0).then(|| std::time::Duration::from_nanos(seat.gate));
        let note = self.note.clone();
        self.command(
            slot,
            Command::HandOn {
                name,
                token,
                note,
                progress_within,
                max_hold: None,
            },
        );
    }
}
