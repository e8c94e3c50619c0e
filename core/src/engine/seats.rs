use super::agenda::Agenda;
use super::due::{Due, Dues};
use super::seat::Seat;
use crate::{LeaseName, Moment};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// Every seat by its name, and the agenda of what is due of them.
///
/// The two can not drift apart: whoever may change a seat has its name noted, with what was due of it; and
/// the agenda is asked only when it has taken in everything that was noted ([`settle`](Self::settle)).
#[derive(Clone, Debug)]
pub(super) struct Seats {
    /// From doubt to the deadline.
    grace: Duration,
    /// Boxed: half the places of a tree's nodes may be empty, and a seat is large.
    by_name: BTreeMap<LeaseName, Box<Seat>>,
    agenda: Agenda,
    /// Seats that may have changed since the agenda was settled, and what was due of them before.
    touched: Vec<(LeaseName, Option<Dues>)>,
}

impl Seats {
    pub(super) fn new(grace: Duration) -> Self {
        Self {
            grace,
            by_name: BTreeMap::new(),
            agenda: Agenda::default(),
            touched: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &LeaseName> {
        self.by_name.keys()
    }

    pub(super) fn get(&self, name: &LeaseName) -> Option<&Seat> {
        self.by_name.get(name).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, name: &LeaseName) -> Option<&mut Seat> {
        self.make_room();
        let seat = self.by_name.get_mut(name)?;
        // Most seats are touched more than once in a row, and what was due of them in between never counts.
        if self.touched.last().is_none_or(|(last, _)| last != name) {
            let before = Dues::of(seat, self.grace);
            self.touched.push((name.clone(), Some(before)));
        }
        Some(seat)
    }

    pub(super) fn insert(&mut self, name: LeaseName, seat: Seat) {
        self.make_room();
        let replaced = self.by_name.insert(name.clone(), Box::new(seat));
        let before = replaced.map(|seat| Dues::of(&seat, self.grace));
        self.touched.push((name, before));
    }

    pub(super) fn remove(&mut self, name: &LeaseName) {
        self.make_room();
        if let Some(seat) = self.by_name.remove(name) {
            self.touched
                .push((name.clone(), Some(Dues::of(&seat, self.grace))));
        }
    }

    /// Before a seat is touched.
    fn make_room(&mut self) {
        if self.touched.len() == TOUCHED_MAX {
            self.settle();
        }
    }

    /// Changes every seat.
    pub(super) fn change_all(&mut self, mut change: impl FnMut(&mut Seat)) {
        for seat in self.by_name.values_mut() {
            change(seat);
        }
        self.touched.clear();
        self.agenda = self.scan();
    }

    /// Writes into the agenda what is due of the seats that were touched.
    fn settle(&mut self) {
        for (name, before) in self.touched.drain(..) {
            // A seat that was touched twice is noted twice, the second time with what never stood in the
            // agenda: nothing is found to be taken out, and everything is in already.
            match self.by_name.get_key_value(&name) {
                Some((name, seat)) => {
                    let after = Dues::of(seat, self.grace);
                    self.agenda.replace(name, before.as_ref(), Some(&after));
                }
                None => self.agenda.replace(&name, before.as_ref(), None),
            }
        }
    }

    /// The agenda as it is now.
    pub(super) fn agenda(&mut self) -> &Agenda {
        self.settle();
        debug_assert!(
            self.by_name.len() > SCANNED_MAX || self.agenda == self.scan(),
            "the agenda has drifted from the seats: {self:?}"
        );
        &self.agenda
    }

    /// The seats of which one of these is due by `moment`, in the order of their names.
    pub(super) fn due(&mut self, dues: &[Due], moment: Moment) -> Vec<LeaseName> {
        let agenda = self.agenda();
        let due = dues.iter().flat_map(|due| agenda.by(*due, moment));
        let mut names: Vec<LeaseName> = due.cloned().collect();
        names.sort_unstable();
        names
    }

    /// What `choose` makes of the seats of which this is due by `moment`: of the longest due ones, `limit` at
    /// most.
    pub(super) fn longest_due<T>(
        &mut self,
        due: Due,
        moment: Moment,
        limit: usize,
        choose: impl Fn(&LeaseName, &Seat) -> Option<T>,
    ) -> Vec<T> {
        self.settle();
        let due = self.agenda.by(due, moment);
        let chosen = due.filter_map(|name| choose(name, self.by_name.get(name)?));
        chosen.take(limit).collect()
    }

    /// The agenda as a look at every seat gives it.
    fn scan(&self) -> Agenda {
        let mut agenda = Agenda::default();
        for (name, seat) in &self.by_name {
            agenda.replace(name, None, Some(&Dues::of(seat, self.grace)));
        }
        agenda
    }
}

/// The agenda is a function of the seats.
impl PartialEq for Seats {
    fn eq(&self, other: &Self) -> bool {
        self.by_name == other.by_name
    }
}

impl Eq for Seats {}

impl Hash for Seats {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.by_name.hash(state);
    }
}

/// Most seats that are noted before the agenda takes them in.
const TOUCHED_MAX: usize = 64;

/// Most seats with which a debug build compares the agenda with a look at every seat, each time it is asked.
const SCANNED_MAX: usize = 32;
