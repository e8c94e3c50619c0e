//! A state of the machine, and the moves that lead on from it.

use super::super::Roster;
use super::minds::{ANY, IDS_EACH, List, Mind, Minds};
use super::notes::{Notes, is_another_member, keep};
use super::{Broken, Flaw, Milestone, Scenario};
use std::collections::BTreeSet;
use std::fmt;

pub(super) const SERVERS: usize = 5;

/// Of a list of three.
const MAJORITY: usize = 2;

/// How often a server is told anew that has kept something else meanwhile.
pub(super) const ROUNDS_MAX: usize = 3;

/// Places of a list.
pub(super) const PLACES: [usize; 3] = [0, 1, 2];

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) notes: Notes,
    /// Who has the lease here: a candidate's number plus one.
    lease: u8,
    forgot: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Candidate {
    pub(super) mind: u32,
    /// Who has no lease, as it has seen since it knew that all keep its list.
    free: [bool; 3],
}

/// How far a run of `store init` is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Phase {
    NotYet,
    /// What each keeps, and that none has a lease. In one step: what changes meanwhile, the rest must notice.
    Looks,
    /// Each keeps the new list instead of what was seen.
    Anew,
    LeasesAgain,
    Completes,
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Run {
    phase: Phase,
    /// Of this phase.
    asked: [bool; 3],
    done: [bool; 3],
    /// What each has kept, and then what each is to keep.
    notes: [Notes; 3],
    seen: [u8; 3],
}

/// A request whose sender waits for it no longer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Late {
    server: usize,
    told: Notes,
    instead: Option<u8>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) servers: [Server; SERVERS],
    pub(super) candidates: [Candidate; 2],
    pub(super) runs: [Run; 2],
    late: [Option<Late>; 2],
    forgets: u8,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Deed {
    Meets,
    /// And cannot have it keep anything.
    MeetsOnly,
    Tells,
    TellsLate,
    SeesNoLease,
    Takes,
    Adopts,
    LosesIn,
    GivesBack,
    Restarts,
    Does(Phase),
    DoesLate(Phase),
    Dies,
    Arrives,
    Forgets,
}

/// Who does it, and with which server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Move {
    who: &'static str,
    pub(super) deed: Deed,
    server: Option<usize>,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.map_or("", |server| ["a", "b", "c", "d", "e"][server]);
        write!(f, "{} {:?} {server}", self.who, self.deed)
    }
}

const CANDIDATES: [&str; 2] = ["P", "Q"];
const RUNS: [&str; 2] = ["init", "next init"];

/// A scenario, with or without a rule that is wrong.
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) flaw: Option<Flaw>,
    pub(super) minds: Minds,
}

type Next = Vec<(Move, State)>;

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

    /// A candidate dials a server, which is let in or not by what it keeps, and told what it is to keep (`admission.rs`): or that
    /// fails, or comes late.
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

    /// What a candidate takes, and what is lost. A term of which a minority is lost is brought to another server.
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

    /// `store init`, each step of which all members must have answered.
    fn runs(&mut self, state: &State, number: usize, next: &mut Next) {
        let run = state.runs[number];
        let is_before_over = number == 0 || self.scenario.at_once || state.runs[0].phase == Phase::Ended;
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
    fn fresh(&self, state: &State, server: usize) -> u8 {
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

    /// This request is under way, and its sender waits for it no longer.
    fn is_late(&self, state: &State, late: Late) -> Option<State> {
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

impl Server {
    fn is_held_by(&self, candidate: usize) -> bool {
        usize::from(self.lease) == candidate + 1
    }
}

impl State {
    /// The same, when all terms are over and nothing is under way.
    pub(super) fn quiet(&self) -> Self {
        let mut quiet = self.clone();
        quiet.servers.iter_mut().for_each(|server| server.lease = 0);
        (quiet.late, quiet.runs) = ([None; 2], [Run::ENDED; 2]);
        quiet
    }

    pub(super) fn tell(&mut self, server: usize, told: Notes, instead: Option<u8>, flaw: Option<Flaw>) {
        let notes = &mut self.servers[server].notes;
        *notes = keep(*notes, told, instead, flaw);
    }
}

impl Candidate {
    pub(super) fn new(mind: u32) -> Self {
        Self {
            mind,
            free: [false; 3],
        }
    }
}

impl Run {
    const NOT_YET: Self = Self {
        phase: Phase::NotYet,
        asked: [false; 3],
        done: [false; 3],
        notes: [Notes {
            id: 0,
            list: 0,
            complete: false,
        }; 3],
        seen: [0; 3],
    };
    const ENDED: Self = Self {
        phase: Phase::Ended,
        ..Self::NOT_YET
    };
}

fn first_id(server: usize) -> u8 {
    u8::try_from(server).expect("few servers") * IDS_EACH + 1
}
