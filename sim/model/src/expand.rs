//! Everything that can happen next in a world.

use crate::catalogue::{Arrival, Catalogue, Miss, Step};
use crate::configuration::Feature;
use crate::fence;
use crate::invariant::Invariant;
use crate::judge;
use crate::label::Label;
use crate::local::{Clock, Copy, Given, Phase, Sender, State};
use crate::message::{Answer, Ask};
use crate::milestone::{Milestone, Milestones};
use crate::record::{Flaw, Record, Whose};
use crate::world::{Holder, World};
use tenure_core::Change;

/// What happened between two worlds, for the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    /// Something of the candidate in this place alone.
    Own(u8, Label),
    /// A request of the candidate in this place arrived at the store.
    Arrived {
        place: u8,
        by: Sender,
        ask: Ask,
        answer: Answer,
        when: Arrived,
    },
    /// The watch told the candidate in this place something about a term.
    Told(u8, Change, u8),
    /// The watch told the candidate in this place that it has missed something.
    Gap(u8),
    /// The store's clock moved by a tick.
    StoreTick,
    /// The work in this place claimed the fence, and was admitted or not.
    Claimed(u8, Admitted),
    /// The work in this place wrote, and was admitted or not.
    Wrote(u8, Admitted),
    /// Somebody asked the holder to step down.
    Asked,
    /// An operator vacated the lease.
    Forced,
}

/// Whether an arriving request was awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrived {
    InTime,
    InTimeWithCopy,
    Late,
}

/// Whether a fence let a work pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admitted {
    Yes,
    No,
}

/// A world that can come next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Successor {
    pub(crate) world: World,
    pub(crate) happening: Happening,
    pub(crate) reached: Milestones,
    pub(crate) broken: Option<Invariant>,
}

/// A world being expanded.
struct Expansion<'a> {
    catalogue: &'a Catalogue,
    world: &'a World,
    found: &'a mut Vec<Successor>,
}

/// Adds every next world to `found`.
pub(crate) fn expand(catalogue: &Catalogue, world: &World, found: &mut Vec<Successor>) -> Result<(), Miss> {
    let candidates = u8::try_from(catalogue.configuration.candidates).expect("at most 3");
    let mut expansion = Expansion {
        catalogue,
        world,
        found,
    };
    for place in 0..candidates {
        expansion.own(place)?;
        expansion.arrivals(place)?;
        if catalogue.configuration.has(Feature::Hints) {
            expansion.hints(place)?;
        }
        if catalogue.configuration.has(Feature::Fence) {
            expansion.fence(place, candidates)?;
        }
    }
    expansion.store_tick(candidates)?;
    expansion.operator();
    Ok(())
}

impl Expansion<'_> {
    fn push(
        &mut self,
        mut world: World,
        happening: Happening,
        reached: Milestones,
        broken: Option<Invariant>,
    ) {
        let broken = broken.or_else(|| judge::beliefs(self.catalogue, &world));
        if world.mark != 0 && !self.catalogue.configuration.has(Feature::Fence) {
            world.mark = 0;
        }
        self.found.push(Successor {
            world,
            happening,
            reached,
            broken,
        });
    }

    /// How many late messages there are.
    fn late(&self) -> usize {
        let locals = &self.world.locals[..self.catalogue.configuration.candidates];
        locals
            .iter()
            .map(|local| usize::from(self.catalogue.brief(*local).late))
            .sum()
    }

    /// The world with one candidate changed.
    fn with(&self, place: u8, step: &Step) -> World {
        let mut world = *self.world;
        world.locals[usize::from(place)] = step.to;
        world
    }

    fn own(&mut self, place: u8) -> Result<(), Miss> {
        let local = self.world.locals[usize::from(place)];
        let left = self.catalogue.summary(local).left;
        let elsewhere = self.late() - usize::from(self.catalogue.brief(local).late);
        for step in self.catalogue.moves(local)? {
            if elsewhere + usize::from(self.catalogue.brief(step.to).late)
                > self.catalogue.configuration.late_max
            {
                continue;
            }
            let mut world = self.with(place, step);
            if matches!(step.label, Label::Restart)
                && let Holder::Place(held, by) = world.holder
                && held == place
            {
                world.holder = match by {
                    Sender::Present => Holder::Place(place, Sender::Former),
                    Sender::Former => Holder::Gone,
                };
            }
            let broken = if self.catalogue.configuration.late_max == 0 {
                judge::withdrawal(self.world, place, step.forgot, left)
            } else {
                None
            };
            self.push(
                world,
                Happening::Own(place, step.label),
                step.reached,
                step.broken.or(broken),
            );
        }
        Ok(())
    }

    fn arrivals(&mut self, place: u8) -> Result<(), Miss> {
        let catalogue = self.catalogue;
        let local = self.world.locals[usize::from(place)];
        let summary = catalogue.summary(local);
        let room = self.late() < catalogue.configuration.late_max;
        let copies: &[Copy] = if room && catalogue.configuration.has(Feature::Duplicates) {
            &[Copy::None, Copy::Stays]
        } else {
            &[Copy::None]
        };
        for (live, ask) in &summary.unapplied {
            for copy in copies {
                let when = match copy {
                    Copy::None => Arrived::InTime,
                    Copy::Stays => Arrived::InTimeWithCopy,
                };
                let given = |answer| Given::Applied {
                    place: *live,
                    answer,
                    copy: *copy,
                };
                self.arrives(place, Sender::Present, *ask, when, given)?;
            }
        }
        for (late, by, ask) in &summary.late_requests {
            self.arrives(place, *by, *ask, Arrived::Late, |_| Given::LateArrived {
                place: *late,
            })?;
        }
        Ok(())
    }

    fn arrives(
        &mut self,
        place: u8,
        by: Sender,
        ask: Ask,
        when: Arrived,
        given: impl Fn(Answer) -> Given,
    ) -> Result<(), Miss> {
        let before = self.world.record;
        let whose = match self.world.holder {
            Holder::Place(held, holder) if held == place && holder == by => Whose::Own,
            Holder::Place(..) | Holder::Gone => Whose::Another,
        };
        let applied = self.catalogue.arrived(Arrival {
            ask,
            record: before,
            whose,
        })?;
        let broken = judge::arrival(ask, before, whose, &applied);
        let mut reached = judge::reached(before, whose, &applied);
        if when == Arrived::Late {
            reached.add(if applied.record == before {
                Milestone::LateRequestRefused
            } else {
                Milestone::LateRequestApplied
            });
        }
        let local = self.world.locals[usize::from(place)];
        for step in self.catalogue.given(local, given(applied.answer))? {
            let mut world = self.with(place, step);
            world.record = applied.record;
            if applied.whose == Whose::Own {
                world.holder = Holder::Place(place, by);
            }
            let happening = Happening::Arrived {
                place,
                by,
                ask,
                answer: applied.answer,
                when,
            };
            self.push(world, happening, reached, broken);
        }
        Ok(())
    }

    /// A hint may come at any time, repeat, or be lost. What it says was true when it was sent: hints about
    /// earlier terms say less than those about the present one, and a gap covers what they set off.
    fn hints(&mut self, place: u8) -> Result<(), Miss> {
        let local = self.world.locals[usize::from(place)];
        if matches!(self.catalogue.brief(local).state, State::Crashed) {
            return Ok(());
        }
        let mut told = vec![(Given::Gap, Happening::Gap(place))];
        if let Some(record) = self.world.record {
            let mut tell = |change| {
                let token = record.token;
                told.push((
                    Given::Told { change, token },
                    Happening::Told(place, change, token),
                ));
            };
            tell(Change::Taken);
            if record.released {
                tell(Change::Vacated);
            }
            if record.asked {
                tell(Change::Asked);
            }
        }
        for (given, happening) in told {
            for step in self.catalogue.given(local, given)? {
                if step.to != local || step.broken.is_some() {
                    self.push(self.with(place, step), happening, step.reached, step.broken);
                }
            }
        }
        Ok(())
    }

    fn fence(&mut self, place: u8, candidates: u8) -> Result<(), Miss> {
        let local = self.world.locals[usize::from(place)];
        let Some(work) = self.catalogue.summary(local).work else {
            return Ok(());
        };
        let (mark, flaw) = (self.world.mark, self.catalogue.flaw());
        let mut reached = Milestones::default();
        if work.phase == Phase::Unclaimed {
            let admitted = flaw == Some(Flaw::OlderTermClaims) || fence::may_claim(work.token, mark);
            if !admitted {
                reached.add(Milestone::StaleRefused);
                self.push(
                    *self.world,
                    Happening::Claimed(place, Admitted::No),
                    reached,
                    None,
                );
                return Ok(());
            }
            if mark != 0 && mark != work.token {
                reached.add(Milestone::FenceRaised);
            }
            let broken = judge::admitted(work.token, mark);
            for step in self.catalogue.given(local, Given::Claimed)? {
                let mut world = self.with(place, step);
                world.mark = work.token;
                self.push(
                    world,
                    Happening::Claimed(place, Admitted::Yes),
                    reached,
                    broken.or(step.broken),
                );
            }
            return Ok(());
        }
        if flaw != Some(Flaw::StaleTermWrites) && !fence::may_write(work.token, mark) {
            reached.add(Milestone::StaleRefused);
            self.push(*self.world, Happening::Wrote(place, Admitted::No), reached, None);
            return Ok(());
        }
        let outdated = (work.phase == Phase::Outdated).then_some(Invariant::NoLostUpdate);
        let broken = judge::admitted(work.token, mark).or(outdated);
        let mut world = *self.world;
        for other in 0..candidates {
            let given = if other == place {
                Given::Wrote
            } else {
                Given::Outdated
            };
            let local = &mut world.locals[usize::from(other)];
            let reads = self.catalogue.summary(*local).work;
            if other == place || reads.is_some_and(|work| work.phase == Phase::Fresh) {
                *local = self
                    .catalogue
                    .given(*local, given)?
                    .first()
                    .map_or(*local, |step| step.to);
            }
        }
        self.push(world, Happening::Wrote(place, Admitted::Yes), reached, broken);
        Ok(())
    }

    /// The store's clock may move once every running process's clock is ahead of it.
    fn store_tick(&mut self, candidates: u8) -> Result<(), Miss> {
        let mut world = *self.world;
        let mut anybody = false;
        for local in &mut world.locals[..usize::from(candidates)] {
            match self.catalogue.brief(*local).state {
                State::Crashed => {}
                State::Running(Clock::Level) => return Ok(()),
                State::Running(Clock::Ahead) => {
                    anybody = true;
                    let steps = self.catalogue.given(*local, Given::StoreTick)?;
                    *local = steps.first().map_or(*local, |step| step.to);
                }
            }
        }
        if let Some(record) = &mut world.record {
            record.remaining = record.remaining.saturating_sub(1);
            record.asked &= record.remaining > 0;
        }
        if anybody || world != *self.world {
            self.push(world, Happening::StoreTick, Milestones::default(), None);
        }
        Ok(())
    }

    fn operator(&mut self) {
        let Some(record) = self.world.record.filter(|record| record.is_held()) else {
            return;
        };
        if self.catalogue.configuration.has(Feature::Requests) && !record.asked {
            let mut world = *self.world;
            world.record = Some(Record {
                asked: true,
                ..record
            });
            self.push(world, Happening::Asked, Milestones::default(), None);
        }
        // The bound of the model: one such term at a time.
        if self.catalogue.configuration.has(Feature::ForcedReleases) && self.world.forced == 0 {
            let mut world = *self.world;
            world.record = Some(Record {
                released: true,
                remaining: 0,
                asked: false,
                ..record
            });
            world.forced = record.token;
            let mut reached = Milestones::default();
            if judge::anybody_believes(self.catalogue, &world) {
                reached.add(Milestone::ForcedRelease);
            }
            self.push(world, Happening::Forced, reached, None);
        }
    }
}
