//! What a candidate knows: the real [`Membership`], whose answers are remembered, as states of the model
//! share them.

use super::super::{Entry, Kept, Known, MemberId, Membership, Roster, Seat};
use super::notes::Notes;
use super::search::Map;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Ids that one server may be given: more than are ever known at a time.
pub(super) const IDS_EACH: u8 = 8;

/// An id that is to be one that nobody has.
pub(super) const ANY: u8 = u8::MAX;

/// Servers of a list, by their numbers.
pub(super) type List = [usize; 3];

/// What one candidate knows, and what it would do.
pub(super) struct Mind {
    list: List,
    known: Known,
    pub(super) complete: bool,
    /// All keep the list, for all that it has seen.
    pub(super) recorded: bool,
    pub(super) roster: u8,
    pub(super) refused: [bool; 3],
    pub(super) ids: [u8; 3],
    pub(super) unrecorded: Vec<(usize, Notes)>,
    pub(super) completed: Vec<(usize, Notes)>,
}

/// All that candidates may know, each once and by its number.
#[derive(Default)]
pub(super) struct Minds {
    /// By their numbers less one, each with its ids as bits.
    rosters: Vec<(Roster, u64)>,
    minds: Vec<Mind>,
    numbers: Map<Key, u32>,
    admitted: Map<(u32, usize, Notes), (u32, Admitted)>,
}

/// What a server is to keep besides, or that it is refused.
pub(super) type Admitted = Result<Option<Notes>, ()>;

type Key = (List, u8, bool, [(u8, bool, bool, bool); 3]);

fn host(server: usize) -> String {
    ["a", "b", "c", "d", "e"][server].to_owned()
}

fn member(id: u8) -> MemberId {
    MemberId::read(&format!("{id:032x}")).expect("an id")
}

fn number(id: &MemberId) -> u8 {
    u8::from_str_radix(&id.to_string(), 16).unwrap_or(ANY)
}

impl Minds {
    pub(super) fn mind(&self, mind: u32) -> &Mind {
        &self.minds[mind as usize]
    }

    /// Of a process that has just started.
    pub(super) fn new_process(&mut self, list: List) -> u32 {
        let known = Membership::new(list.map(host).into()).lock().clone();
        self.enter(list, known)
    }

    pub(super) fn number_of(&mut self, roster: &Roster) -> u8 {
        let place = self.rosters.iter().position(|(known, _)| known == roster);
        let place = place.unwrap_or_else(|| {
            let ids = (1..64).filter(|id| roster.has(&member(*id)));
            self.rosters
                .push((roster.clone(), ids.fold(0, |all, id| all | 1 << id)));
            self.rosters.len() - 1
        });
        u8::try_from(place + 1).expect("few lists")
    }

    /// The list of these servers by these ids.
    pub(super) fn list_of(&mut self, list: List, ids: [u8; 3]) -> u8 {
        let members = list
            .into_iter()
            .zip(ids)
            .map(|(server, id)| (member(id), host(server)));
        self.number_of(&Roster::of(members))
    }

    /// The ids that stand in a list, as bits.
    pub(super) fn ids_in(&self, list: u8) -> u64 {
        usize::from(list)
            .checked_sub(1)
            .map_or(0, |place| self.rosters[place].1)
    }

    pub(super) fn entry(&self, notes: Notes) -> Option<Entry> {
        Entry::of(self.kept(notes))
    }

    pub(super) fn kept(&self, notes: Notes) -> Kept {
        Kept {
            id: (notes.id > 0).then(|| member(notes.id)),
            roster: usize::from(notes.list)
                .checked_sub(1)
                .map(|place| self.rosters[place].0.clone()),
            complete: notes.complete,
        }
    }

    fn notes(&mut self, entry: &Entry) -> Notes {
        match &entry.roster {
            Some(roster) => Notes {
                id: number(&entry.id),
                list: self.number_of(roster),
                complete: entry.complete,
            },
            // Drawn just now.
            None => Notes {
                id: ANY,
                ..Notes::default()
            },
        }
    }

    /// What it knows when it has heard this from the server at this place, and what it does.
    pub(super) fn admit(&mut self, mind: u32, place: usize, heard: Notes) -> (u32, Admitted) {
        if let Some(known) = self.admitted.get(&(mind, place, heard)) {
            return *known;
        }
        let list = self.mind(mind).list;
        let membership = Membership {
            hosts: list.map(host).into(),
            known: Mutex::new(self.mind(mind).known.clone()),
            lets_all_in: false,
            records: AtomicBool::new(true),
        };
        let told = membership.admit(place, self.kept(heard));
        let told = told
            .map(|entry| entry.map(|entry| self.notes(&entry)))
            .map_err(|_| ());
        let next = self.enter(list, membership.lock().clone());
        self.admitted.insert((mind, place, heard), (next, told));
        (next, told)
    }

    fn enter(&mut self, list: List, known: Known) -> u32 {
        let roster = known.roster.as_ref().map_or(0, |roster| self.number_of(roster));
        let id = |seat: &Seat| seat.id.as_ref().map_or(0, number);
        let seat = |place: usize| {
            let seat = &known.seats[place];
            (id(seat), seat.recorded, seat.told, seat.refused.is_some())
        };
        let seats = [seat(0), seat(1), seat(2)];
        let key = (list, roster, known.complete, seats);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let membership = Membership {
            hosts: list.map(host).into(),
            known: Mutex::new(known.clone()),
            lets_all_in: false,
            records: AtomicBool::new(true),
        };
        let mut to_notes = |entries: Vec<(usize, Entry)>| -> Vec<(usize, Notes)> {
            let entries = entries.into_iter();
            entries
                .map(|(place, entry)| (place, self.notes(&entry)))
                .collect()
        };
        let mind = Mind {
            list,
            complete: membership.is_complete(),
            recorded: membership.is_recorded(),
            roster,
            refused: seats.map(|seat| seat.3),
            ids: seats.map(|seat| seat.0),
            unrecorded: to_notes(membership.unrecorded()),
            completed: to_notes(membership.completed()),
            known,
        };
        let number = u32::try_from(self.minds.len()).expect("few");
        self.minds.push(mind);
        self.numbers.insert(key, number);
        number
    }
}
