//! Every state, breadth first, so that what is wrong is told by a shortest course.

use super::Broken;
use super::state::{Deed, Move};
use super::world::World;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose hash is quick in a build that is not optimised.
pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Folded>>;

/// Of few bytes, none of which anybody chooses who means harm.
#[derive(Default)]
pub(super) struct Folded(u64);

impl Folded {
    fn fold(&mut self, part: u64) {
        self.0 = (self.0.rotate_left(5) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.fold(u64::from(*byte)));
    }

    fn write_u8(&mut self, part: u8) {
        self.fold(u64::from(part));
    }

    fn write_u32(&mut self, part: u32) {
        self.fold(u64::from(part));
    }

    fn write_usize(&mut self, part: usize) {
        self.fold(part as u64);
    }

    fn write_isize(&mut self, part: isize) {
        self.fold(part.cast_unsigned() as u64);
    }
}

/// What a search has found.
pub(super) struct Report {
    pub(super) states: usize,
    pub(super) moves: usize,
    pub(super) depth: usize,
    pub(super) broken: Option<(Broken, Vec<Move>)>,
    /// All that has happened.
    pub(super) deeds: BTreeSet<Deed>,
    pub(super) milestones: BTreeSet<super::Milestone>,
}

impl World {
    /// Goes through all states.
    pub(super) fn search(&mut self) -> Report {
        let first = self.beginning();
        let mut numbers = Map::default();
        numbers.insert(first.clone(), 0_usize);
        // Whence each was found first, and by what.
        let mut origins: Vec<(usize, Option<Move>)> = vec![(0, None)];
        let mut waiting = VecDeque::from([(first, 0_usize, 0_usize)]);
        let mut report = Report {
            states: 1,
            moves: 0,
            depth: 0,
            broken: None,
            deeds: BTreeSet::new(),
            milestones: BTreeSet::new(),
        };
        let mut calm = super::calm::Calm::default();
        while let Some((state, number, depth)) = waiting.pop_front() {
            report.depth = depth;
            self.reaches(&state, &mut report.milestones);
            if let Some(broken) = self
                .broken(&state)
                .or_else(|| self.dead(&state, &mut calm).map(Broken::Dead))
            {
                report.broken = Some((broken, course(&origins, number)));
                break;
            }
            for (deed, next) in self.next(&state) {
                report.moves += 1;
                report.deeds.insert(deed.deed);
                if let Some(broken) = self.broken_by(&state, deed, &next) {
                    let mut moves = course(&origins, number);
                    moves.push(deed);
                    report.broken = Some((broken, moves));
                    return report;
                }
                if let Entry::Vacant(place) = numbers.entry(next.clone()) {
                    place.insert(origins.len());
                    waiting.push_back((next, origins.len(), depth + 1));
                    origins.push((number, Some(deed)));
                }
            }
            report.states = origins.len();
        }
        report
    }
}

fn course(origins: &[(usize, Option<Move>)], mut number: usize) -> Vec<Move> {
    let mut moves = Vec::new();
    while let (origin, Some(deed)) = origins[number] {
        moves.push(deed);
        number = origin;
    }
    moves.reverse();
    moves
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} states, {} moves, {} deep",
            self.states, self.moves, self.depth
        )?;
        if let Some((broken, moves)) = &self.broken {
            write!(f, "; {broken:?} after {} moves:", moves.len())?;
            moves.iter().try_for_each(|deed| write!(f, "\n  {deed}"))?;
        }
        Ok(())
    }
}
