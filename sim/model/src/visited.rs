use crate::hash::fold;
use crate::world::Packed;

/// The states that were found, in the order in which they were, each with where it was found from. The set is
/// exact: two states are the same only if all their bits are.
pub(crate) struct Visited {
    states: Vec<Packed>,
    parents: Vec<u32>,
    /// Open addressing: 0 for free, or the number of a state plus one.
    table: Vec<u32>,
    mask: usize,
}

/// Whether a state was new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    New,
    Known,
    /// It was new, but there are as many as can be numbered.
    Full,
}

/// The beginning has no parent.
const NO_PARENT: u32 = u32::MAX;

impl Visited {
    pub(crate) fn new() -> Self {
        const FIRST_SLOTS: usize = 1 << 16;
        Self {
            states: Vec::new(),
            parents: Vec::new(),
            table: vec![0; FIRST_SLOTS],
            mask: FIRST_SLOTS - 1,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn count(&self) -> u64 {
        u64::try_from(self.states.len()).unwrap_or(u64::MAX)
    }

    pub(crate) fn state(&self, number: usize) -> Packed {
        self.states[number]
    }

    /// Where a state was first found from; `None` for the beginning.
    pub(crate) fn parent(&self, number: usize) -> Option<usize> {
        let parent = self.parents[number];
        (parent != NO_PARENT).then(|| usize::try_from(parent).expect("32 bits fit"))
    }

    pub(crate) fn enter(&mut self, state: Packed, parent: Option<usize>) -> Entered {
        let mut slot = self.home(state);
        loop {
            match self.table[slot] {
                0 => break,
                number if self.states[place_of(number)] == state => return Entered::Known,
                _ => slot = (slot + 1) & self.mask,
            }
        }
        let Ok(number) = u32::try_from(self.states.len() + 1) else {
            return Entered::Full;
        };
        self.table[slot] = number;
        self.states.push(state);
        let parent = parent.and_then(|parent| u32::try_from(parent).ok());
        self.parents.push(parent.unwrap_or(NO_PARENT));
        // At most three quarters full.
        if self.states.len() > self.table.len() / 4 * 3 {
            self.grow();
        }
        Entered::New
    }

    fn home(&self, state: Packed) -> usize {
        let half = |part: u128| u64::try_from(part & u128::from(u64::MAX)).expect("64 bits");
        let hash = fold(half(state), half(state >> 64));
        usize::try_from(hash).expect("64 bits") & self.mask
    }

    fn grow(&mut self) {
        let slots = self.table.len() * 2;
        self.table = Vec::new();
        self.table = vec![0; slots];
        self.mask = slots - 1;
        for place in 0..self.states.len() {
            let mut slot = self.home(self.states[place]);
            while self.table[slot] != 0 {
                slot = (slot + 1) & self.mask;
            }
            self.table[slot] = u32::try_from(place + 1).expect("every state is numbered");
        }
    }
}

fn place_of(number: u32) -> usize {
    usize::try_from(number - 1).expect("32 bits fit")
}
