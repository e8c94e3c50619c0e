//! What comes about when all members answer and one process after the other acts, undisturbed and to its end:
//! no state is a dead end. The order is that of `record.rs` and of `admission.rs`.

use super::Flaw;
use super::minds::List;
use super::notes::{Notes, is_another_member};
use super::search::Map;
use super::state::{PLACES, ROUNDS_MAX, SERVERS, State};
use super::world::World;

/// What must come about, and does not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Dead {
    /// Nobody leads, though all name the same.
    NobodyLeads,
    /// Who has seen a new process lead does not with one member away.
    NeedsAll,
    /// A process that runs does not lead where a new one does.
    NeedsNewProcess,
    /// `store init` fails, or who names its list does not lead then.
    InitFails,
    /// Or changes what it has recorded itself.
    InitIsNotIdempotent,
}

/// What was judged before.
#[derive(Default)]
pub(super) struct Calm {
    servers: Map<[Notes; SERVERS], Option<Dead>>,
    processes: Map<([Notes; SERVERS], u32), bool>,
}

impl World {
    pub(super) fn dead(&mut self, state: &State, calm: &mut Calm) -> Option<Dead> {
        // When all terms are over, and nothing is under way.
        let quiet = state.quiet();
        let notes = quiet.servers.map(|server| server.notes);
        let known = calm.servers.get(&notes).copied();
        let dead = known.unwrap_or_else(|| self.is_dead_end(&quiet));
        calm.servers.insert(notes, dead);
        if dead.is_some() {
            return dead;
        }
        for candidate in [0, 1] {
            let key = (notes, state.candidates[candidate].mind);
            let goes_on = calm.processes.get(&key).copied();
            let goes_on = goes_on.unwrap_or_else(|| self.goes_on_like_new(&quiet, candidate));
            calm.processes.insert(key, goes_on);
            if !goes_on {
                return Some(Dead::NeedsNewProcess);
            }
        }
        None
    }

    fn is_dead_end(&mut self, quiet: &State) -> Option<Dead> {
        let mut leads = false;
        for candidate in [0, 1] {
            let mut led = quiet.clone();
            if self.new_leads(&mut led, candidate, None) {
                leads = true;
                if !PLACES
                    .iter()
                    .all(|away| self.new_leads(&mut led.clone(), candidate, Some(*away)))
                {
                    return Some(Dead::NeedsAll);
                }
            }
            let mut anew = quiet.clone();
            let list = self.scenario.candidates[candidate];
            let is_led = self.inits(&mut anew, list) && self.new_leads(&mut anew.clone(), candidate, None);
            if !is_led {
                return Some(Dead::InitFails);
            }
            let before = anew.clone();
            if !self.inits(&mut anew, list) || anew != before {
                return Some(Dead::InitIsNotIdempotent);
            }
        }
        let [one, other] = self.scenario.candidates;
        (one == other && !leads).then_some(Dead::NobodyLeads)
    }

    /// Whether this process leads where a new one does; but for one whose members were recorded anew since.
    fn goes_on_like_new(&mut self, quiet: &State, candidate: usize) -> bool {
        let mut new = quiet.clone();
        if !self.new_leads(&mut new, candidate, None) {
            return true;
        }
        let [found, known] = [&new, quiet].map(|state| self.mind_of(state, candidate).roster);
        // Nor one that was refused when it connected, which has ended.
        let is_refused = self.mind_of(quiet, candidate).refused.contains(&true);
        if is_refused || known != 0 && known != found {
            return true;
        }
        // Also where it does not reach one of them, which it may never have met.
        new.candidates[candidate] = quiet.candidates[candidate];
        let mut ways = PLACES.iter().map(|away| Some(*away)).chain([None]);
        ways.all(|away| self.acquires(&mut new.clone(), candidate, away))
    }

    /// A process that starts, and asks for a lease.
    fn new_leads(&mut self, state: &mut State, candidate: usize, away: Option<usize>) -> bool {
        state.candidates[candidate] = self.new_process(candidate);
        for place in PLACES.into_iter().filter(|place| Some(*place) != away) {
            self.dial(state, candidate, place);
        }
        if self.mind_of(state, candidate).refused.contains(&true) {
            return false;
        }
        self.acquires(state, candidate, away)
    }

    fn dial(&mut self, state: &mut State, candidate: usize, place: usize) {
        let server = self.scenario.candidates[candidate][place];
        let mut due = self.hears(state, candidate, place);
        for _round in 0..ROUNDS_MAX {
            let Some(told) = due else { break };
            state.tell(server, told, None, self.flaw);
            due = self.hears(state, candidate, place);
        }
    }

    fn acquires(&mut self, state: &mut State, candidate: usize, away: Option<usize>) -> bool {
        let is_there = |place: &usize| Some(*place) != away;
        for _round in 0..2 {
            if self.mind_of(state, candidate).complete {
                break;
            }
            let mut looks = PLACES.to_vec();
            if self.has(Flaw::AsksOnlyUnmet) {
                looks.retain(|place| self.mind_of(state, candidate).ids[*place] == 0);
            }
            for place in looks.into_iter().filter(is_there) {
                self.dial(state, candidate, place);
            }
            self.tell_all(
                state,
                candidate,
                self.mind_of(state, candidate).unrecorded.clone(),
                away,
            );
            let mind = self.mind_of(state, candidate);
            if mind.refused.contains(&true) {
                return false;
            }
            if mind.recorded && away.is_none() {
                self.tell_all(
                    state,
                    candidate,
                    self.mind_of(state, candidate).completed.clone(),
                    away,
                );
            }
        }
        if !self.mind_of(state, candidate).complete {
            return false;
        }
        if !self.has(Flaw::NobodyTellsComplete) {
            self.tell_all(
                state,
                candidate,
                self.mind_of(state, candidate).completed.clone(),
                away,
            );
        }
        let list = self.scenario.candidates[candidate];
        for place in PLACES.into_iter().filter(is_there) {
            self.dial(state, candidate, place);
        }
        let mind = self.mind_of(state, candidate);
        let grants = |place: &usize| {
            let own = state.servers[list[*place]].notes.id;
            let is_let_in = mind.ids[*place] > 0 && !mind.refused[*place];
            is_there(place) && is_let_in && !is_another_member(own, mind.ids[*place])
        };
        PLACES.iter().filter(|place| grants(place)).count() >= 2
    }

    fn tell_all(
        &mut self,
        state: &mut State,
        candidate: usize,
        all: Vec<(usize, Notes)>,
        away: Option<usize>,
    ) {
        for (place, told) in all.into_iter().filter(|(place, _)| Some(*place) != away) {
            state.tell(self.scenario.candidates[candidate][place], told, None, self.flaw);
            self.hears(state, candidate, place);
        }
    }

    /// `store init`, to its end.
    fn inits(&mut self, state: &mut State, list: List) -> bool {
        let kept = list.map(|server| state.servers[server].notes);
        let entries = if self.is_same(kept) && !self.has(Flaw::AlwaysAnew) {
            kept
        } else {
            let entries = self.anew(state, list);
            for place in PLACES {
                state.tell(list[place], entries[place], Some(kept[place].list), self.flaw);
            }
            entries
        };
        PLACES.iter().all(|place| {
            let told = Notes {
                complete: true,
                ..entries[*place]
            };
            state.tell(list[*place], told, None, self.flaw);
            state.servers[list[*place]].notes == told
        })
    }
}
