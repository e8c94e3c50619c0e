//! Every candidate's situation, every move, once. The engine runs once per distinct situation and input; the
//! search itself only handles numbers.

use crate::configuration::Configuration;
use crate::hash::{FoldState, Pair};
use crate::invariant::Invariant;
use crate::label::Label;
use crate::local::{Brief, Given, Local, Move, Summary, given, moves};
use crate::message::Ask;
use crate::milestone::Milestones;
use crate::names::Ranks;
use crate::record::{Applied, Flaw, Record, Rules, Whose};
use crate::world::{LOCALS_MAX, LocalId};
use std::collections::HashMap;
use std::sync::Arc;

/// A [`Move`] with the number of where it leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) label: Label,
    pub(crate) to: LocalId,
    pub(crate) reached: Milestones,
    pub(crate) broken: Option<Invariant>,
    pub(crate) forgot: Ranks,
}

/// New names for a local.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Renaming {
    pub(crate) local: LocalId,
    pub(crate) tokens: Ranks,
    pub(crate) present: Ranks,
    pub(crate) former: Ranks,
}

impl Renaming {
    fn code(self) -> (Pair, Pair) {
        (
            Pair(self.local, self.tokens.0),
            Pair(self.present.0, self.former.0),
        )
    }
}

/// A request at the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    pub(crate) ask: Ask,
    pub(crate) record: Option<Record>,
    pub(crate) whose: Whose,
}

impl Arrival {
    fn code(self) -> Pair {
        let whose = match self.whose {
            Whose::Own => 1 << 31,
            Whose::Another => 0,
        };
        Pair(self.ask.code() | whose, self.record.map_or(0, Record::code))
    }
}

/// Something that has not been worked out yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Miss {
    Moves(LocalId),
    Given(LocalId, Given),
    Renaming(Renaming),
    Aged(LocalId, u8),
    Arrival(Arrival),
}

/// What has been worked out so far.
pub(crate) struct Catalogue {
    pub(crate) configuration: Configuration,
    rules: Rules,
    numbers: HashMap<Arc<Local>, LocalId, FoldState>,
    locals: Vec<Arc<Local>>,
    briefs: Vec<Brief>,
    summaries: Vec<Summary>,
    moves: Vec<Option<Box<[Step]>>>,
    /// By a local's number and [`Given::code`].
    given: HashMap<Pair, Box<[Step]>, FoldState>,
    /// By [`Renaming::code`].
    renamed: HashMap<(Pair, Pair), LocalId, FoldState>,
    aged: HashMap<Pair, LocalId, FoldState>,
    /// By [`Arrival::code`].
    arrivals: HashMap<Pair, Applied, FoldState>,
    /// How often an engine was stepped.
    pub(crate) steps: u64,
}

impl Catalogue {
    pub(crate) fn new(configuration: Configuration, rules: Rules) -> Self {
        Self {
            configuration,
            rules,
            numbers: HashMap::default(),
            locals: Vec::new(),
            briefs: Vec::new(),
            summaries: Vec::new(),
            moves: Vec::new(),
            given: HashMap::default(),
            renamed: HashMap::default(),
            aged: HashMap::default(),
            arrivals: HashMap::default(),
            steps: 0,
        }
    }

    pub(crate) fn flaw(&self) -> Option<Flaw> {
        self.rules.flaw
    }

    pub(crate) fn number(&mut self, local: Local) -> LocalId {
        if let Some(number) = self.numbers.get(&local) {
            return *number;
        }
        let place = self.locals.len();
        assert!(
            place < LOCALS_MAX,
            "more than {LOCALS_MAX} situations of one candidate"
        );
        let number = LocalId::try_from(place).expect("fewer than 2^26");
        let summary = Summary::of(&local);
        self.briefs.push(summary.brief);
        self.summaries.push(summary);
        self.moves.push(None);
        let local = Arc::new(local);
        self.locals.push(Arc::clone(&local));
        self.numbers.insert(local, number);
        number
    }

    pub(crate) fn locals(&self) -> usize {
        self.locals.len()
    }

    pub(crate) fn local(&self, local: LocalId) -> &Local {
        &self.locals[index(local)]
    }

    pub(crate) fn brief(&self, local: LocalId) -> &Brief {
        &self.briefs[index(local)]
    }

    pub(crate) fn summary(&self, local: LocalId) -> &Summary {
        &self.summaries[index(local)]
    }

    pub(crate) fn moves(&self, local: LocalId) -> Result<&[Step], Miss> {
        self.moves[index(local)].as_deref().ok_or(Miss::Moves(local))
    }

    pub(crate) fn given(&self, local: LocalId, what: Given) -> Result<&[Step], Miss> {
        let known = self.given.get(&Pair(local, what.code()));
        known.map(|steps| &**steps).ok_or(Miss::Given(local, what))
    }

    pub(crate) fn renamed(&self, renaming: Renaming) -> Result<LocalId, Miss> {
        let known = self.renamed.get(&renaming.code());
        known.copied().ok_or(Miss::Renaming(renaming))
    }

    pub(crate) fn aged(&self, local: LocalId, record_token: u8) -> Result<LocalId, Miss> {
        let known = self.aged.get(&Pair(local, u32::from(record_token)));
        known.copied().ok_or(Miss::Aged(local, record_token))
    }

    pub(crate) fn arrived(&self, arrival: Arrival) -> Result<Applied, Miss> {
        let known = self.arrivals.get(&arrival.code());
        known.copied().ok_or(Miss::Arrival(arrival))
    }

    /// Works out what was missing.
    pub(crate) fn fill(&mut self, miss: Miss) {
        match miss {
            Miss::Moves(local) => {
                let found = moves(&self.configuration, self.local(local));
                let steps = self.numbered(found);
                self.moves[index(local)] = Some(steps);
            }
            Miss::Given(local, what) => {
                let found = given(&self.configuration, self.local(local), what);
                let steps = self.numbered(found);
                self.given.insert(Pair(local, what.code()), steps);
            }
            Miss::Renaming(renaming) => {
                let Renaming {
                    local,
                    tokens,
                    present,
                    former,
                } = renaming;
                let renamed = self.local(local).renamed(tokens, present, former);
                let number = self.number(renamed);
                self.renamed.insert(renaming.code(), number);
            }
            Miss::Aged(local, record_token) => {
                let aged = self.local(local).aged(record_token);
                let number = self.number(aged);
                self.aged.insert(Pair(local, u32::from(record_token)), number);
            }
            Miss::Arrival(arrival) => {
                let Arrival { ask, record, whose } = arrival;
                self.arrivals
                    .insert(arrival.code(), self.rules.apply(ask, record, whose));
            }
        }
    }

    fn numbered(&mut self, found: Vec<Move>) -> Box<[Step]> {
        self.steps += u64::try_from(found.len()).unwrap_or(0);
        let number = |a_move: Move| Step {
            label: a_move.label,
            to: self.number(a_move.local),
            reached: a_move.reached,
            broken: a_move.broken,
            forgot: a_move.forgot,
        };
        found.into_iter().map(number).collect()
    }
}

fn index(local: LocalId) -> usize {
    usize::try_from(local).expect("a number of 26 bits")
}
