use crate::hash::fold;
use crate::world::Packed;

/// How many parts the set has: each is entered by a thread of its own.
pub(crate) const PARTS: usize = 2;

/// Number of a state: its place in its part, and the part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StateId(u32);

impl StateId {
    /// Most states of one part.
    const PLACES_MAX: usize = 1 << 31;
    /// What the beginning was found from.
    const NONE: Self = Self(u32::MAX);

    pub(crate) fn new(part: usize, place: usize) -> Self {
        let number = place * PARTS + part;
        Self(u32::try_from(number).expect("a part takes in no more than fit"))
    }

    fn part(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit") % PARTS
    }

    fn place(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit") / PARTS
    }
}

/// The states that were found, each with where it was found from. The set is exact: two states are the same
/// only if all their bits are.
pub(crate) struct Visited {
    pub(crate) parts: [Part; PARTS],
}

/// The states of one half of all hashes, in the order in which they were found.
pub(crate) struct Part {
    states: Vec<Packed>,
    parents: Vec<StateId>,
    /// Open addressing: 0 for free, or the place of a state plus one.
    table: Vec<u32>,
    full: bool,
}

impl Visited {
    pub(crate) fn new() -> Self {
        Self {
            parts: std::array::from_fn(|_| Part::new()),
        }
    }

    /// The part to which a state belongs.
    pub(crate) fn part_of(state: Packed) -> usize {
        usize::from(hash(state) >> 63 == 1)
    }

    pub(crate) fn begin(&mut self, state: Packed) {
        self.parts[Self::part_of(state)].enter(state, StateId::NONE);
    }

    pub(crate) fn count(&self) -> u64 {
        let count: usize = self.parts.iter().map(Part::len).sum();
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// Whether states had to be left out, because no more can be numbered.
    pub(crate) fn is_full(&self) -> bool {
        self.parts.iter().any(|part| part.full)
    }

    pub(crate) fn state(&self, id: StateId) -> Packed {
        self.parts[id.part()].states[id.place()]
    }

    /// Where a state was first found from; `None` for the beginning.
    pub(crate) fn parent(&self, id: StateId) -> Option<StateId> {
        let parent = self.parts[id.part()].parents[id.place()];
        (parent != StateId::NONE).then_some(parent)
    }
}

impl Part {
    fn new() -> Self {
        const FIRST_SLOTS: usize = 1 << 15;
        Self {
            states: Vec::new(),
            parents: Vec::new(),
            table: vec![0; FIRST_SLOTS],
            full: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Adds a state of this part, unless it is known.
    pub(crate) fn enter(&mut self, state: Packed, parent: StateId) {
        let mask = self.table.len() - 1;
        let mut slot = home(state, mask);
        loop {
            match self.table[slot] {
                0 => break,
                number if self.states[place(number)] == state => return,
                _ => slot = (slot + 1) & mask,
            }
        }
        // One less than all: the last number means "none".
        if self.states.len() >= StateId::PLACES_MAX - 1 {
            self.full = true;
            return;
        }
        self.states.push(state);
        self.parents.push(parent);
        self.table[slot] = u32::try_from(self.states.len()).expect("fewer than 2^31");
        // At most three quarters full.
        if self.states.len() > self.table.len() / 4 * 3 {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let slots = self.table.len() * 2;
        // The old table is given back first: both at once would be the peak of memory.
        self.table = Vec::new();
        self.table = vec![0; slots];
        for (number, state) in (1..).zip(&self.states) {
            let mut slot = home(*state, slots - 1);
            while self.table[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            self.table[slot] = number;
        }
    }
}

fn hash(state: Packed) -> u64 {
    let half = |part: u128| u64::try_from(part & u128::from(u64::MAX)).expect("64 bits");
    fold(half(state), half(state >> 64))
}

fn home(state: Packed, mask: usize) -> usize {
    usize::try_from(hash(state) & (u64::MAX >> 1)).expect("64 bits") & mask
}

fn place(number: u32) -> usize {
    usize::try_from(number - 1).expect("32 bits fit")
}
