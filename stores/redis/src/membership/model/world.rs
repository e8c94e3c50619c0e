//! The moves that lead on from a state: what candidates do, and what nobody does.

use super::minds::{ANY, List, Mind, Minds};
use super::notes::{Notes, is_another_member};
use super::state::{
    Candidate, Deed, Late, MAJORITY, Move, PLACES, ROUNDS_MAX, Run, SERVERS, Server, State, first_id,
};
use super::{Broken, Flaw, Milestone, Scenario};
use std::collections::BTreeSet;

const CANDIDATES: [&str; 2] = ["P", "Q"];

/// A scenario, with or without a rule that is wrong.
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) flaw: Option<Flaw>,
    pub(super) minds: Minds,
}

pub(super) type Next = Vec<(Move, State)>;

impl World {
    pub(super) fn new(scenario: Scenario, flaw: Option<Flaw>) -> Self {
        Self {
            scenario,
            flaw,
            minds: Minds::default(),
        }
    }

    pub(super) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn list(&self, candidate: usize) -> List {
        self.scenario.candidates[candidate]
    }

    pub(super) fn new_process(&mut self, candidate: usize) -> Candidate {
        Candidate::new(self.minds.new_process(self.list(candidate)))
    }

    pub(super) fn mind_of(&self, state: &State, candidate: usize) -> &Mind {
        self.minds.mind(state.candidates[candidate].mind)
    }

    pub(super) fn beginning(&mut self) -> State {
        let mut servers = [Server::default(); SERVERS];
        if let Some(list) = self.scenario.before {
            let ids = list.map(first_id);
            let roster = self.minds.list_of(list, ids);
            for (server, id) in list.into_iter().zip(ids) {
                servers[server].notes = Notes {
                    id,
                    list: roster,
                    complete: true,
                };
            }
        }
        let candidates = [0, 1].map(|candidate| self.new_process(candidate));
        let mut first = State {
            servers,
            candidates,
            runs: [Run::NOT_YET; 2],
            late: [None; 2],
            forgets: self.scenario.forgets_max,
        };
        if self.scenario.before == Some(self.list(0)) {
            for place in PLACES {
                self.hears(&mut first, 0, place);
            }
        }
        first
    }

    /// Whether this candidate leads: a majority of its list grants it.
    fn leads(&self, state: &State, candidate: usize) -> bool {
        let list = self.list(candidate).into_iter();
        list.filter(|server| state.servers[*server].is_held_by(candidate))
            .count()
            >= MAJORITY
    }

    /// What happens in a state, so that a search in which nothing does is noticed.
    pub(super) fn reaches(&self, state: &State, reached: &mut BTreeSet<Milestone>) {
        let leads = [0, 1].map(|candidate| self.leads(state, candidate));
        let is_complete = |list: List| list.iter().all(|server| state.servers[*server].notes.complete);
        let refused = |candidate: usize| self.mind_of(state, candidate).refused.contains(&true);
        let is_anew = |server: &Server| server.notes.list > 0 && !server.notes.complete;
        let all = [
            (leads[0], Milestone::OneLeads),
            (leads[1], Milestone::OtherLeads),
            (is_complete(self.list(1)), Milestone::OtherIsComplete),
            (refused(0) || refused(1), Milestone::Refused),
            (
                leads[0] && state.servers.iter().any(is_anew),
                Milestone::RecordedBesideLeader,
            ),
        ];
        reached.extend(
            all.into_iter()
                .filter_map(|(is_so, milestone)| is_so.then_some(milestone)),
        );
    }

    /// What must not be in this state.
    pub(super) fn broken(&self, state: &State) -> Option<Broken> {
        let [one, other] = [0, 1].map(|candidate| self.leads(state, candidate));
        let is_shared = |server: &usize| {
            [0, 1]
                .iter()
                .all(|candidate| self.list(*candidate).contains(server))
        };
        let mut shared = (0..SERVERS).filter(is_shared);
        if one && other && !shared.all(|server| state.servers[server].forgot) {
            return Some(Broken::TwoLead);
        }
        let is_of_another = |(server, it): (usize, &Server)| {
            it.notes.id > 0 && !(first_id(server)..first_id(server + 1)).contains(&it.notes.id)
        };
        let mut servers = state.servers.iter().enumerate();
        servers.any(is_of_another).then_some(Broken::IdOfAnother)
    }

    /// What must not come about by this move.
    pub(super) fn broken_by(&self, before: &State, deed: Move, after: &State) -> Option<Broken> {
        let is_anew = match deed.deed {
            Deed::Forgets | Deed::Does(_) | Deed::DoesLate(_) => true,
            Deed::Arrives => before.late.iter().flatten().any(|late| late.instead.is_some()),
            _ => false,
        };
        let pairs = before.servers.iter().zip(&after.servers);
        let mut changed = pairs.filter(|(old, new)| old.notes.complete && old.notes.list != new.notes.list);
        (!is_anew && changed.next().is_some()).then_some(Broken::ChangedWithoutInit)
    }

    pub(super) fn next(&mut self, state: &State) -> Next {
        let mut next = Vec::new();
        for candidate in [0, 1] {
            for place in PLACES {
                self.dials(state, candidate, place, &mut next);
                self.leases(state, candidate, place, &mut next);
            }
            self.tells(state, candidate, &mut next);
            self.ends(state, candidate, &mut next);
        }
        for run in 0..self.scenario.runs.len() {
            self.runs(state, run, &mut next);
        }
        Self::happens(state, self.flaw, &mut next);
        next.retain(|(by, then)| self.scenario.allows(by.deed) && then != state);
        next
    }

    /// A candidate dials a server, which is let in or not by what it keeps, and told what it is to keep
    /// (`admission.rs`): or that fails, or comes late.
    fn dials(&mut self, state: &State, candidate: usize, place: usize, next: &mut Next) {
        let server = self.list(candidate)[place];
        let by = |deed| Move {
            who: CANDIDATES[candidate],
            deed,
            server: Some(server),
        };
        let mut then = state.clone();
        let Some(told) = self.hears(&mut then, candidate, place) else {
            next.push((by(Deed::Meets), then));
            return;
        };
        next.push((by(Deed::MeetsOnly), then.clone()));
        if let Some(late) = self.is_late(
            &then,
            Late {
                server,
                told,
                instead: None,
            },
        ) {
            next.push((by(Deed::TellsLate), late));
        }
        let mut due = Some(told);
        for _round in 0..ROUNDS_MAX {
            let Some(told) = due else { break };
            then.tell(server, told, None, self.flaw);
            due = self.hears(&mut then, candidate, place);
        }
        next.push((by(Deed::Meets), then));
    }

    /// A candidate hears what a server keeps. What that is to keep besides.
    pub(super) fn hears(&mut self, state: &mut State, candidate: usize, place: usize) -> Option<Notes> {
        let server = self.list(candidate)[place];
        let kept = state.servers[server].notes;
        let (mind, told) = self.minds.admit(state.candidates[candidate].mind, place, kept);
        state.candidates[candidate].mind = mind;
        let known = self.minds.mind(mind);
        if known.complete || !known.recorded {
            state.candidates[candidate].free = [false; 3];
        }
        let told = told.ok()??;
        if self.has(Flaw::NobodyTellsComplete) && kept.list == told.list {
            return None;
        }
        let id = if told.id == ANY {
            self.fresh(state, server)
        } else {
            told.id
        };
        Some(Notes { id, ..told })
    }

    /// Whom it has met it tells what they are to keep (`record.rs`).
    fn tells(&mut self, state: &State, candidate: usize, next: &mut Next) {
        let it = state.candidates[candidate];
        let mind = self.minds.mind(it.mind);
        let mut entries = mind.unrecorded.clone();
        let is_unused = mind.recorded && (it.free == [true; 3] || self.has(Flaw::CompletesBesideLeases));
        if is_unused || mind.complete && !self.has(Flaw::NobodyTellsComplete) {
            entries.extend(&mind.completed);
        }
        for (place, told) in entries {
            let server = self.list(candidate)[place];
            let by = |deed| Move {
                who: CANDIDATES[candidate],
                deed,
                server: Some(server),
            };
            if let Some(late) = self.is_late(
                state,
                Late {
                    server,
                    told,
                    instead: None,
                },
            ) {
                next.push((by(Deed::TellsLate), late));
            }
            let mut heard = state.clone();
            heard.tell(server, told, None, self.flaw);
            self.hears(&mut heard, candidate, place);
            next.push((by(Deed::Tells), heard));
        }
    }

    /// What a candidate takes, and what is lost. A term of which a minority is lost is brought to another
    /// server.
    fn leases(&self, state: &State, candidate: usize, place: usize, next: &mut Next) {
        let server = self.list(candidate)[place];
        let (it, at) = (&state.candidates[candidate], &state.servers[server]);
        let mind = self.minds.mind(it.mind);
        if mind.recorded && !mind.complete && at.lease == 0 {
            let mut seen = state.clone();
            seen.candidates[candidate].free[place] = true;
            next.push((
                Move {
                    who: CANDIDATES[candidate],
                    deed: Deed::SeesNoLease,
                    server: Some(server),
                },
                seen,
            ));
        }
        let mut with = |deed, lease| {
            let mut then = state.clone();
            then.servers[server].lease = lease;
            next.push((
                Move {
                    who: CANDIDATES[candidate],
                    deed,
                    server: Some(server),
                },
                then,
            ));
        };
        let mine = u8::try_from(candidate + 1).expect("two");
        if at.lease == mine && self.leads(state, candidate) {
            with(Deed::LosesIn, 0);
        }
        let is_met = mind.ids[place] > 0 || self.has(Flaw::TakesFromWhoToldNoId);
        let is_refused = mind.refused[place];
        let is_let_in = at.lease == 0 && is_met && !is_refused;
        let is_another = is_another_member(at.notes.id, mind.ids[place]);
        let may_lead = mind.complete || self.has(Flaw::LeadsBeforeComplete);
        if is_let_in && may_lead && (!is_another || self.has(Flaw::TakeComparesNoId)) {
            with(Deed::Takes, mine);
        }
        if is_let_in && self.leads(state, candidate) && (!is_another || self.has(Flaw::AdoptComparesNoId)) {
            with(Deed::Adopts, mine);
        }
    }

    /// A candidate ends its term, or dies and is started again when its lease is over.
    fn ends(&mut self, state: &State, candidate: usize, next: &mut Next) {
        let by = |deed| Move {
            who: CANDIDATES[candidate],
            deed,
            server: None,
        };
        let mut over = state.clone();
        for server in &mut over.servers {
            if server.is_held_by(candidate) {
                server.lease = 0;
            }
        }
        next.push((by(Deed::GivesBack), over.clone()));
        over.candidates[candidate] = self.new_process(candidate);
        next.push((by(Deed::Restarts), over));
    }

    /// This request is under way, and its sender waits for it no longer.
    pub(super) fn is_late(&self, state: &State, late: Late) -> Option<State> {
        let mut then = state.clone();
        let free = then.late[..self.scenario.late_max]
            .iter()
            .position(Option::is_none)?;
        then.late[free] = Some(late);
        then.late.sort_unstable();
        then.late.reverse();
        Some(then)
    }

    /// What nobody does.
    fn happens(state: &State, flaw: Option<Flaw>, next: &mut Next) {
        for (number, late) in state.late.iter().enumerate() {
            let Some(late) = late else { continue };
            let mut then = state.clone();
            then.late[number] = None;
            then.late.sort_unstable();
            then.late.reverse();
            then.tell(late.server, late.told, late.instead, flaw);
            let by = Move {
                who: "what was said late",
                deed: Deed::Arrives,
                server: Some(late.server),
            };
            next.push((by, then));
        }
        // Before a list is complete a member must not forget.
        let is_complete = state.servers.iter().any(|server| server.notes.complete);
        if state.forgets > 0 && is_complete {
            for server in (0..SERVERS).filter(|server| state.servers[*server].notes.id > 0) {
                let mut then = state.clone();
                then.forgets -= 1;
                then.servers[server] = Server {
                    forgot: true,
                    ..Server::default()
                };
                let by = Move {
                    who: "server",
                    deed: Deed::Forgets,
                    server: Some(server),
                };
                next.push((by, then));
            }
        }
    }
}
