//! `store init`.

use super::super::Roster;
use super::Flaw;
use super::minds::List;
use super::notes::Notes;
use super::state::{Deed, Late, Move, PLACES, Phase, Run, State, first_id};
use super::world::{Next, World};

const RUNS: [&str; 2] = ["init", "next init"];

impl World {
    /// `store init`, each step of which all members must have answered.
    pub(super) fn runs(&mut self, state: &State, number: usize, next: &mut Next) {
        let run = state.runs[number];
        let is_before_over = number == 0 || state.runs[0].phase == Phase::Ended;
        if run.phase == Phase::Ended || !is_before_over {
            return;
        }
        let phase = run.phase.max(Phase::Looks);
        if phase == Phase::Looks {
            next.push((
                Move {
                    who: RUNS[number],
                    deed: Deed::Does(phase),
                    server: None,
                },
                self.looks(state, number),
            ));
            return;
        }
        for place in PLACES.into_iter().filter(|place| !run.asked[*place]) {
            let server = self.scenario.runs[number][place];
            let by = |deed| Move {
                who: RUNS[number],
                deed,
                server: Some(server),
            };
            let mut then = state.clone();
            then.runs[number].asked[place] = true;
            if let Some(late) = self.told_by(&run, phase, place, server)
                && let Some(late) = self.is_late(&then, late)
            {
                next.push((by(Deed::DoesLate(phase)), late));
            }
            then.runs[number].done[place] = self.does(&mut then, number, place, server);
            self.goes_on(&mut then, number);
            next.push((by(Deed::Does(phase)), then));
        }
        let mut dead = state.clone();
        dead.runs[number] = Run::ENDED;
        next.push((
            Move {
                who: RUNS[number],
                deed: Deed::Dies,
                server: None,
            },
            dead,
        ));
    }

    /// The first step of a run.
    fn looks(&mut self, state: &State, number: usize) -> State {
        let mut then = state.clone();
        let servers = self.scenario.runs[number].map(|server| state.servers[server]);
        let notes = servers.map(|server| server.notes);
        let is_same = self.is_same(notes) && !self.has(Flaw::AlwaysAnew);
        let is_used = servers.iter().any(|server| server.lease > 0) && !self.has(Flaw::LooksAtNoLease);
        let is_complete = notes.iter().any(|notes| notes.complete) || self.has(Flaw::SameNeedsNoLook);
        then.runs[number] = match (is_same, is_used) {
            (true, _) if is_complete => Run {
                phase: Phase::Completes,
                notes,
                ..Run::NOT_YET
            },
            (_, true) => Run::ENDED,
            (true, false) => Run {
                phase: Phase::LeasesAgain,
                notes,
                ..Run::NOT_YET
            },
            (false, false) => Run {
                phase: Phase::Anew,
                notes: self.anew(state, self.scenario.runs[number]),
                seen: notes.map(|notes| notes.list),
                ..Run::NOT_YET
            },
        };
        then
    }

    fn told_by(&self, run: &Run, phase: Phase, place: usize, server: usize) -> Option<Late> {
        let told = run.notes[place];
        match phase {
            Phase::Anew => Some(Late {
                server,
                told,
                instead: Some(run.seen[place]),
            }),
            Phase::Completes => Some(Late {
                server,
                told: Notes {
                    complete: true,
                    ..told
                },
                instead: None,
            }),
            _ => None,
        }
    }

    /// One request of a run. Whether it came to what the run needs.
    fn does(&self, then: &mut State, number: usize, place: usize, server: usize) -> bool {
        let run = then.runs[number];
        let Some(said) = self.told_by(&run, run.phase, place, server) else {
            return then.servers[server].lease == 0;
        };
        then.tell(server, said.told, said.instead, self.flaw);
        then.servers[server].notes == said.told
    }

    /// To the next step, when all have been asked.
    fn goes_on(&self, then: &mut State, number: usize) {
        let run = then.runs[number];
        if run.asked.contains(&false) {
            return;
        }
        let is_enough = self.has(Flaw::GoesOnWithoutAll) && run.phase == Phase::Anew;
        if run.done.contains(&false) && !is_enough {
            then.runs[number] = Run::ENDED;
            return;
        }
        let mut on = Run {
            asked: [false; 3],
            done: [false; 3],
            ..run
        };
        on.phase = match run.phase {
            Phase::Anew => {
                on.seen = [0; 3];
                match self.has(Flaw::LooksAtNoLease) || self.has(Flaw::NoSecondLook) {
                    true => Phase::Completes,
                    false => Phase::LeasesAgain,
                }
            }
            Phase::LeasesAgain => Phase::Completes,
            Phase::NotYet | Phase::Looks | Phase::Completes | Phase::Ended => {
                then.runs[number] = Run::ENDED;
                return;
            }
        };
        then.runs[number] = on;
    }

    /// Whether they keep that they are just these members.
    pub(super) fn is_same(&self, notes: [Notes; 3]) -> bool {
        let entries: Option<Vec<_>> = notes.into_iter().map(|notes| self.minds.entry(notes)).collect();
        entries.is_some_and(|entries| Roster::is_of(&entries))
    }

    /// What a run has its members keep.
    pub(super) fn anew(&mut self, state: &State, list: List) -> [Notes; 3] {
        let reused = |server: usize| state.servers[server].notes.id;
        let ids = list.map(|server| match self.has(Flaw::IdsOfBefore) && reused(server) > 0 {
            true => reused(server),
            false => self.fresh(state, server),
        });
        let roster = self.minds.list_of(list, ids);
        ids.map(|id| Notes {
            id,
            list: roster,
            complete: false,
        })
    }

    /// An id for this server that nobody knows of.
    pub(super) fn fresh(&self, state: &State, server: usize) -> u8 {
        let mut known = 0_u64;
        let mut note = |notes: Notes| known |= 1 << notes.id | self.minds.ids_in(notes.list);
        state.servers.iter().for_each(|server| note(server.notes));
        state.late.iter().flatten().for_each(|late| note(late.told));
        for run in &state.runs {
            run.notes.into_iter().for_each(&mut note);
            run.seen.into_iter().for_each(|list| {
                note(Notes {
                    list,
                    ..Notes::default()
                })
            });
        }
        for candidate in &state.candidates {
            let mind = self.minds.mind(candidate.mind);
            mind.ids.into_iter().for_each(|id| {
                note(Notes {
                    id,
                    ..Notes::default()
                })
            });
            note(Notes {
                list: mind.roster,
                ..Notes::default()
            });
        }
        let mut ids = first_id(server)..first_id(server + 1);
        ids.find(|id| known & 1 << id == 0)
            .expect("fewer ids are known at a time")
    }
}
