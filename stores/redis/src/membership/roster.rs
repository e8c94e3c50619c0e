//! Who the members of a quorum are, and what each of them keeps of it.

use super::words::REPAIR;
pub(crate) use crate::id::Id as MemberId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tenure_core::{Fault, StoreError};

/// The field of a member's own id.
pub(crate) const FIELD_ID: &str = "member";

/// The field of all members.
pub(crate) const FIELD_ROSTER: &str = "members";

/// The field that tells that all members keep the same.
pub(crate) const FIELD_COMPLETE: &str = "complete";

/// The field of when it was taken in again, as it kept nothing any more: in seconds since 1970, by its clock.
pub(crate) const FIELD_READMITTED: &str = "readmitted";

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

    /// Whether these are its members, each of them once.
    pub(crate) fn is_of(entries: &[Entry]) -> bool {
        let ids: BTreeSet<&MemberId> = entries.iter().map(|entry| &entry.id).collect();
        let is_of_all = |entry: &Entry| {
            let members = entry.roster.as_ref().map(|roster| roster.0.keys());
            members.is_some_and(|members| members.eq(ids.iter().copied()))
        };
        ids.len() == entries.len() && entries.iter().all(is_of_all)
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether the server of this id is one of them.
    pub(super) fn has(&self, id: &MemberId) -> bool {
        self.0.contains_key(id)
    }

    /// Whether they are the same servers, whatever led to them.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
    }

    /// Whose host this was.
    pub(super) fn at(&self, host: &str) -> Option<&MemberId> {
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
    pub(super) id: Option<MemberId>,
    pub(super) roster: Option<Roster>,
    /// All members keep the same roster.
    pub(super) complete: bool,
}

impl Kept {
    /// The hosts of the members, for people, where it keeps them.
    pub(crate) fn hosts(&self) -> Option<String> {
        self.roster.as_ref().map(Roster::hosts)
    }

    /// Whether all of them keep the same.
    pub(crate) fn complete(&self) -> bool {
        self.complete
    }

    /// Whether it is just this.
    pub(crate) fn is(&self, entry: &Entry) -> bool {
        self.id.as_ref() == Some(&entry.id) && self.roster == entry.roster && self.complete == entry.complete
    }

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

impl Entry {
    /// What a member keeps that keeps both.
    pub(crate) fn of(kept: Kept) -> Option<Self> {
        Some(Self {
            id: kept.id?,
            roster: Some(kept.roster?),
            complete: kept.complete,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Kept, MemberId, Roster};
    use tenure_core::Fault;

    fn id(number: u8) -> MemberId {
        MemberId::read(&format!("{number:032x}")).unwrap()
    }

    fn roster(members: [(u8, &str); 3]) -> Roster {
        Roster::of(members.map(|(number, host)| (id(number), host.to_owned())))
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
}
