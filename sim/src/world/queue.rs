//! What will happen, in the order of time; what is due at the same time, in the order in which it was
//! planned.

use super::happening::Happening;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Clone, Copy)]
struct Entry {
    at: u64,
    number: u64,
    happening: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The heap keeps its greatest entry on top: that is the soonest one here.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// The queue of a world. Its length is bounded by what the world has under way: a few entries for each
/// process, message and planned fault.
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Entry>,
    planned: u64,
}

impl Queue {
    pub(crate) fn plan(&mut self, at: u64, happening: Happening) {
        let number = self.planned;
        self.planned += 1;
        self.heap.push(Entry {
            at,
            number,
            happening,
        });
    }

    pub(crate) fn next(&mut self) -> Option<(u64, Happening)> {
        self.heap.pop().map(|entry| (entry.at, entry.happening))
    }
}
