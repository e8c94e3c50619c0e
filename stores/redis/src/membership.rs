//! Which servers are one quorum. Each member keeps its own id and those of all members, so that whoever names others is noticed:
//! two candidates whose lists of hosts differ could both find a majority.
//!
//! First each server is given an id, by whoever comes first. Who then finds all the servers of its list with an id records the list in
//! each of them that has none; when all have the same one, it is complete, which each keeps, too. No lease is taken before: of two lists
//! that share a server only one can become complete, whichever servers fail. What is recorded is the ids, which two who come at the
//! same time read alike; the hosts are beside them for people, and for a server that came back at its host with nothing.

use crate::url::invalid;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenure_core::{Fault, StoreError};

/// The field of a member's own id.
pub(crate) const FIELD_ID: &str = "member";

/// The field of all members.
pub(crate) const FIELD_ROSTER: &str = "members";

/// The field that tells that all members keep the same.
pub(crate) const FIELD_COMPLETE: &str = "complete";

/// Digits of an id.
const ID_DIGITS: usize = 32;

/// What a server is called as a member, whatever names lead to it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct MemberId(String);

impl MemberId {
    /// One that no other server has.
    pub(crate) fn any() -> Self {
        let half = || RandomState::new().build_hasher().finish();
        Self(format!("{:016x}{:016x}", half(), half()))
    }

    fn read(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == ID_DIGITS && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The members of a quorum, each with the host by which whoever recorded them came to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Roster(BTreeMap<MemberId, String>);

impl Roster {
    pub(crate) fn of(members: impl IntoIterator<Item = (MemberId, String)>) -> Self {
        Self(members.into_iter().collect())
    }

    fn read(text: &str) -> Option<Self> {
        let pairs = text.split(' ').map(|pair| {
            let (id, host) = pair.split_once('=')?;
            Some((MemberId::read(id)?, host.to_owned()))
        });
        pairs.collect::<Option<BTreeMap<_, _>>>().map(Self)
    }

    /// Whether they are the same servers, whatever led to them.
    fn is(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
    }

    /// Whose host this was.
    fn at(&self, host: &str) -> Option<&MemberId> {
        let found = self.0.iter().find(|(_, named)| *named == host);
        found.map(|(id, _)| id)
    }

    /// Their hosts, for people.
    pub(crate) fn hosts(&self) -> String {
        let mut hosts: Vec<&str> = self.0.values().map(String::as_str).collect();
        hosts.sort_unstable();
        hosts.join(",")
    }
}

impl fmt::Display for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (id, host)) in self.0.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(f, "{space}{id}={host}")?;
        }
        Ok(())
    }
}

/// What a server keeps of it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    id: Option<MemberId>,
    roster: Option<Roster>,
    /// All members keep the same roster.
    complete: bool,
}

impl Kept {
    /// By the texts of its fields.
    ///
    /// # Errors
    /// [`Fault::Unreadable`].
    pub(crate) fn read(
        id: Option<&str>,
        roster: Option<&str>,
        complete: Option<&str>,
    ) -> Result<Self, StoreError> {
        let read = Self {
            id: id.and_then(MemberId::read),
            roster: roster.and_then(Roster::read),
            complete: complete == Some("1"),
        };
        if read.id.is_some() == id.is_some() && read.roster.is_some() == roster.is_some() {
            return Ok(read);
        }
        Err(StoreError::not_applied(
            Fault::Unreadable,
            format!("what the server keeps of the quorum cannot be read; {REPAIR}"),
        ))
    }
}

/// What a server is to keep where it keeps nothing of the kind: its id, and the members where they are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) id: MemberId,
    pub(crate) roster: Option<Roster>,
    pub(crate) complete: bool,
}

/// The servers of one list of hosts, and what is known of who they are.
pub(crate) struct Membership {
    hosts: Vec<String>,
    known: Mutex<Known>,
    /// For who is about to record them anew.
    lets_all_in: bool,
}

#[derive(Default)]
struct Known {
    roster: Option<Roster>,
    /// All members keep it, or did at one time.
    complete: bool,
    seats: Vec<Seat>,
}

/// What is known of the server at one place of the list.
#[derive(Clone, Default)]
struct Seat {
    id: Option<MemberId>,
    /// It keeps the roster.
    recorded: bool,
    /// Why it does not count, if it does not.
    refused: Option<StoreError>,
}

impl Membership {
    pub(crate) fn new(hosts: Vec<String>) -> Self {
        Self {
            known: Mutex::new(Known {
                roster: None,
                complete: false,
                seats: vec![Seat::default(); hosts.len()],
            }),
            hosts,
            lets_all_in: false,
        }
    }

    /// That takes every server as a member.
    pub(crate) fn unchecked(hosts: Vec<String>) -> Self {
        Self {
            lets_all_in: true,
            ..Self::new(hosts)
        }
    }

    /// The hosts of the list, in its order.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Whether all members keep the same roster, or did at one time: then no other list can become complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.lock().complete
    }

    /// Whether the server at this place is the member that it should be, by what it keeps. What it is to keep besides, if anything.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a server that is none of the members, or a member for the second time.
    pub(crate) fn admit(&self, place: usize, kept: Kept) -> Result<Option<Entry>, StoreError> {
        if self.lets_all_in {
            return Ok(None);
        }
        let mut known = self.lock();
        let judged = self.judge(&mut known, place, kept);
        let seat = &mut known.seats[place];
        seat.refused = judged.as_ref().err().cloned();
        judged
    }

    fn judge(&self, known: &mut Known, place: usize, kept: Kept) -> Result<Option<Entry>, StoreError> {
        let host = &self.hosts[place];
        let is_recorded = kept.roster.is_some();
        let is_complete = is_recorded && kept.complete;
        let (id, entry) = match (kept.roster, known.roster.clone()) {
            (Some(theirs), ours) => {
                let Some(id) = kept.id.filter(|id| theirs.0.contains_key(id)) else {
                    return Err(other_quorum(host, &theirs, &self.hosts.join(",")));
                };
                match ours {
                    Some(ours) if !theirs.is(&ours) => {
                        return Err(other_quorum(host, &theirs, &ours.hosts()));
                    }
                    Some(_) => {}
                    None => self.learn(known, place, &theirs)?,
                }
                (id, None)
            }
            // It has come to the quorum before it was recorded, or has forgotten everything.
            (None, Some(ours)) => {
                let is_free = |id: &&MemberId| known.holder(id).is_none_or(|holder| holder == place);
                let own = kept.id.as_ref().filter(|id| ours.0.contains_key(id));
                let Some(id) = own.or_else(|| ours.at(host).filter(is_free)) else {
                    return Err(stranger(host, &ours));
                };
                let id = id.clone();
                let entry = Entry {
                    id: id.clone(),
                    roster: Some(ours),
                    complete: known.complete,
                };
                (id, Some(entry))
            }
            (None, None) => match kept.id {
                Some(id) => (id, None),
                None => {
                    return Ok(Some(Entry {
                        id: MemberId::any(),
                        roster: None,
                        complete: false,
                    }));
                }
            },
        };
        if let Some(twin) = known.holder(&id).filter(|twin| *twin != place) {
            return Err(twins(&self.hosts[twin], host));
        }
        let seat = &mut known.seats[place];
        (seat.id, seat.recorded) = (Some(id), is_recorded);
        known.complete |= is_complete || known.seats.iter().all(|seat| seat.recorded);
        Ok(entry)
    }

    /// Takes over what a first member has recorded, if the others that are known can be of it.
    fn learn(&self, known: &mut Known, place: usize, theirs: &Roster) -> Result<(), StoreError> {
        let others = known.seats.iter().enumerate();
        let mut others = others.filter(|(other, seat)| *other != place && seat.id.is_some());
        let can_be = |(other, seat): (usize, &Seat)| {
            let own = seat.id.as_ref().filter(|id| theirs.0.contains_key(id));
            own.or_else(|| theirs.at(&self.hosts[other])).is_some()
        };
        if theirs.0.len() != self.hosts.len() || !others.all(can_be) {
            let hosts = self.hosts.join(",");
            return Err(other_quorum(&self.hosts[place], theirs, &hosts));
        }
        for (other, seat) in known.seats.iter_mut().enumerate() {
            if seat.id.as_ref().is_some_and(|id| !theirs.0.contains_key(id)) {
                seat.id = theirs.at(&self.hosts[other]).cloned();
            }
        }
        known.roster = Some(theirs.clone());
        Ok(())
    }

    /// The servers that were never met, by their places.
    pub(crate) fn unmet(&self) -> Vec<usize> {
        let known = self.lock();
        let places = 0..self.hosts.len();
        places.filter(|place| known.seats[*place].id.is_none()).collect()
    }

    /// What each server that was met is to keep and does not yet, by its place; nothing while nobody has told of the list and one
    /// server was never met.
    pub(crate) fn unrecorded(&self) -> Vec<(usize, Entry)> {
        let known = self.lock();
        let ids = known.seats.iter().map(|seat| seat.id.clone());
        let made = || {
            let ids = ids.collect::<Option<Vec<_>>>()?;
            Some(Roster::of(ids.into_iter().zip(self.hosts.iter().cloned())))
        };
        let roster = known.roster.clone().or_else(made);
        roster.map_or_else(Vec::new, |roster| known.entries(&roster, |seat| !seat.recorded))
    }

    /// What those that keep the list are to keep when it is complete.
    pub(crate) fn completed(&self) -> Vec<(usize, Entry)> {
        let known = self.lock();
        let roster = known.roster.as_ref().filter(|_| known.complete);
        roster.map_or_else(Vec::new, |roster| known.entries(roster, |seat| seat.recorded))
    }

    /// Why a server that answered does not count, if one does not.
    pub(crate) fn refusal(&self) -> Option<StoreError> {
        self.lock().seats.iter().find_map(|seat| seat.refused.clone())
    }

    /// The members, where they are recorded.
    pub(crate) fn roster(&self) -> Option<Roster> {
        self.lock().roster.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// What such servers are to keep of this list.
    fn entries(&self, roster: &Roster, which: impl Fn(&Seat) -> bool) -> Vec<(usize, Entry)> {
        let seats = self.seats.iter().enumerate().filter(|(_, seat)| which(seat));
        let entry = |(place, seat): (usize, &Seat)| {
            let entry = Entry {
                id: seat.id.clone()?,
                roster: Some(roster.clone()),
                complete: self.complete,
            };
            Some((place, entry))
        };
        seats.filter_map(entry).collect()
    }

    /// At which place the server of this id is.
    fn holder(&self, id: &MemberId) -> Option<usize> {
        self.seats.iter().position(|seat| seat.id.as_ref() == Some(id))
    }
}

/// The way out, where the hosts are those that are meant.
const REPAIR: &str = "to have other members, end all candidates, wait for the longest ttl, and run `tenure store init` with their URL";

/// The way out of a server that counts twice.
pub(crate) const TWINS_REPAIR: &str =
    "a quorum's URL names each of its servers once, whatever names they have";

fn other_quorum(host: &str, theirs: &Roster, ours: &str) -> StoreError {
    invalid(&format!(
        "{host} is a member of the quorum {}, and the URL's is {ours}: candidates that name other members may both lead; name the \
         same, or, {REPAIR}",
        theirs.hosts()
    ))
}

fn stranger(host: &str, ours: &Roster) -> StoreError {
    invalid(&format!(
        "{host} is no member of the quorum {}, as the others know it: candidates that name other members may both lead; name the \
         same, or, {REPAIR}",
        ours.hosts()
    ))
}

fn twins(one: &str, other: &str) -> StoreError {
    invalid(&format!(
        "the members {one} and {other} are one server; {TWINS_REPAIR}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{Entry, Kept, MemberId, Membership, Roster};
    use tenure_core::Fault;

    fn id(number: u8) -> MemberId {
        MemberId(format!("{number:032x}"))
    }

    fn membership(hosts: [&str; 3]) -> Membership {
        Membership::new(hosts.map(str::to_owned).into())
    }

    fn roster(members: [(u8, &str); 3]) -> Roster {
        Roster::of(members.map(|(number, host)| (id(number), host.to_owned())))
    }

    fn kept(own: Option<u8>, all: Option<&Roster>) -> Kept {
        Kept {
            id: own.map(id),
            roster: all.cloned(),
            complete: false,
        }
    }

    #[test]
    fn roster_is_read_as_it_was_written() {
        let written = roster([(7, "c:6379"), (1, "a:6379"), (3, "[::1]:6379")]);
        assert_eq!(Roster::read(&written.to_string()), Some(written.clone()));
        assert_eq!(written.hosts(), "[::1]:6379,a:6379,c:6379");
        for wrong in ["", "a", "a=b", &format!("{}=a  ", id(1)), &format!("{}", id(1))] {
            assert_eq!(Roster::read(wrong), None, "{wrong:?}");
            let error = Kept::read(None, Some(wrong), None).unwrap_err();
            assert_eq!(error.fault, Fault::Unreadable, "{error}");
        }
        assert!(Kept::read(Some("1"), None, None).is_err());
        assert_eq!(Kept::read(None, None, None), Ok(Kept::default()));
    }

    #[test]
    fn two_ids_are_not_alike() {
        assert_ne!(MemberId::any(), MemberId::any());
        assert!(MemberId::read(&MemberId::any().to_string()).is_some());
    }

    /// Each is given an id, and the list is recorded when all have one.
    #[test]
    fn list_is_recorded_when_all_were_met() {
        let membership = membership(["a", "b", "c"]);
        let given = membership.admit(0, Kept::default()).unwrap().unwrap();
        assert_eq!(given.roster, None);
        for place in 0..3 {
            assert_eq!(
                (membership.unrecorded(), membership.completed()),
                (vec![], vec![])
            );
            let number = u8::try_from(place).unwrap();
            assert_eq!(membership.admit(place, kept(Some(number), None)), Ok(None));
        }
        let all = roster([(0, "a"), (1, "b"), (2, "c")]);
        let entry = |number, complete| Entry {
            id: id(number),
            roster: Some(all.clone()),
            complete,
        };
        let entries = |complete| [0, 1, 2].map(|number| (usize::from(number), entry(number, complete)));
        assert_eq!(membership.unrecorded(), entries(false));
        for place in 0..3 {
            assert!(!membership.is_complete());
            let number = u8::try_from(place).unwrap();
            assert_eq!(membership.admit(place, kept(Some(number), Some(&all))), Ok(None));
        }
        assert!(membership.is_complete());
        assert_eq!(membership.unrecorded(), []);
        assert_eq!(membership.completed(), entries(true));
        assert_eq!(membership.roster(), Some(all));
    }

    #[test]
    fn members_are_known_by_whatever_names() {
        let all = roster([(0, "a"), (1, "b"), (2, "c")]);
        let membership = membership(["z", "y", "x"]);
        for place in 0..3 {
            let number = u8::try_from(place).unwrap();
            assert_eq!(membership.admit(place, kept(Some(number), Some(&all))), Ok(None));
        }
        assert_eq!(membership.refusal(), None);
        assert!(membership.is_complete());
    }

    /// In whatever order they are met: of two quorums one counts, and so no majority that the other does not know.
    #[test]
    fn member_of_another_quorum_does_not_count() {
        let ours = roster([(0, "a"), (1, "b"), (2, "c")]);
        let theirs = roster([(2, "c"), (3, "d"), (4, "e")]);
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let membership = membership(["a", "b", "d"]);
            let all = [(0, &ours), (1, &ours), (3, &theirs)];
            let mut counted = order.to_vec();
            counted.retain(|place| {
                let (number, roster): (u8, _) = all[*place];
                membership.admit(*place, kept(Some(number), Some(roster))).is_ok()
            });
            counted.sort_unstable();
            // Either those that are one quorum, or the other one alone.
            assert_eq!(counted, if order[0] == 2 { vec![2] } else { vec![0, 1] });
            assert!(membership.refusal().is_some());
        }
    }

    #[test]
    fn server_that_forgot_is_the_member_of_its_host_and_no_other() {
        let all = roster([(0, "a"), (1, "b"), (2, "c")]);
        let one = membership(["a", "b", "c"]);
        assert_eq!(one.admit(0, kept(Some(0), Some(&all))), Ok(None));
        let entry = one.admit(2, Kept::default()).unwrap().unwrap();
        assert_eq!((entry.id, entry.roster), (id(2), Some(all.clone())));
        // It was given an id by somebody who did not know yet.
        let entry = one.admit(1, kept(Some(9), None)).unwrap().unwrap();
        assert_eq!(entry.id, id(1));
        // At a host that nobody named when they were recorded.
        let other = membership(["a", "b", "d"]);
        assert_eq!(other.admit(0, kept(Some(0), Some(&all))), Ok(None));
        let error = other.admit(2, Kept::default()).unwrap_err();
        assert_eq!(error.fault, Fault::Invalid);
        assert!(
            error.message.contains("d is no member of the quorum a,b,c"),
            "{error}"
        );
        assert_eq!(other.refusal(), Some(error));
    }

    /// Met before anybody had told of the list.
    #[test]
    fn server_that_forgot_is_known_when_another_tells() {
        let all = roster([(0, "a"), (1, "b"), (2, "c")]);
        let one = membership(["a", "b", "c"]);
        assert_eq!(one.admit(2, kept(Some(9), None)), Ok(None));
        assert_eq!(one.admit(0, kept(Some(0), Some(&all))), Ok(None));
        assert_eq!(one.admit(1, kept(Some(1), Some(&all))), Ok(None));
        let entry = Entry {
            id: id(2),
            roster: Some(all.clone()),
            complete: false,
        };
        assert_eq!(one.unrecorded(), [(2, entry)]);
        let other = membership(["a", "b", "d"]);
        assert_eq!(other.admit(2, kept(Some(9), None)), Ok(None));
        let error = other.admit(0, kept(Some(0), Some(&all))).unwrap_err();
        assert_eq!(error.fault, Fault::Invalid);
    }

    #[test]
    fn server_that_counts_twice_is_refused() {
        let one = membership(["a", "b", "c"]);
        assert_eq!(one.admit(0, kept(Some(0), None)), Ok(None));
        let error = one.admit(1, kept(Some(0), None)).unwrap_err();
        assert!(error.message.contains("a and b are one server"), "{error}");
        // The same server again, at its place.
        assert_eq!(one.admit(0, kept(Some(0), None)), Ok(None));
    }

    /// One tells it that has seen all of them, and the others need not be there.
    #[test]
    fn list_is_complete_if_one_member_tells_so() {
        let all = roster([(0, "a"), (1, "b"), (2, "c")]);
        let one = membership(["a", "b", "c"]);
        assert_eq!(one.admit(0, kept(Some(0), Some(&all))), Ok(None));
        assert!(!one.is_complete());
        assert_eq!(one.unmet(), [1, 2]);
        let told = Kept {
            complete: true,
            ..kept(Some(1), Some(&all))
        };
        assert_eq!(one.admit(1, told.clone()), Ok(None));
        assert!(one.is_complete());
        // Not where nobody knows of which.
        let damaged = Kept {
            complete: true,
            ..kept(Some(1), None)
        };
        let two = membership(["a", "b", "c"]);
        assert_eq!(two.admit(1, damaged), Ok(None));
        assert!(!two.is_complete());
        // Not of another list.
        let other = membership(["a", "b", "d"]);
        assert_eq!(other.admit(2, kept(Some(9), None)), Ok(None));
        assert!(other.admit(1, told).is_err());
        assert!(!other.is_complete());
    }

    #[test]
    fn list_of_another_length_is_another_quorum() {
        let five = Roster::of((0..5).map(|number| (id(number), format!("h{number}"))));
        let one = membership(["h0", "h1", "h2"]);
        assert!(one.admit(0, kept(Some(0), Some(&five))).is_err());
    }

    #[test]
    fn who_records_them_anew_takes_every_server() {
        let theirs = roster([(2, "c"), (3, "d"), (4, "e")]);
        let anew = Membership::unchecked(vec!["a".to_owned()]);
        assert_eq!(anew.admit(0, kept(Some(3), Some(&theirs))), Ok(None));
    }
}
