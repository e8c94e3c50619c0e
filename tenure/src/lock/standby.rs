//! Those who wait for a lease in order, as everybody reads and ranks them.
//!
//! Whoever waits holds the lease `<name>/candidates/<priority>/<its id>`. The token of that lease, given by
//! the store, orders the arrivals; the wish for its end, which anybody may leave in a record, calls its
//! holder to the front.
//!
//! A user's lease may have such a name. What tells the two apart is who holds it, or held it last: a place is
//! named after its holder, so a lease whose name does not end with its holder's id is nobody's place, and is
//! neither ranked nor called. Two things are left: a user's lease whose holder does have the id that its name
//! ends with is taken for a place, and a candidate of just that id and priority waits for the user's lease,
//! or the user for its place.

use crate::driver::answer_within;
use crate::registry::SharedStore;
use std::cmp::Reverse;
use std::time::Duration;
use tenure_core::{
    Ask, Asked, CandidateId, Fault, FencingToken, Lease, LeaseName, Listed, NameError, NameFault, Occupancy,
    Page, Priority, Selection, StoreError, Timekeeper,
};

/// What is between the name of a lease and those who wait for it.
pub(crate) const CANDIDATES: &str = "/candidates/";

/// How much of a name an error shows.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// Records of a queue that are read at once: a short ttl leaves each answer little time, and NATS reads each
/// record by a request.
const PAGE: u16 = 250;

/// Longest wait for one answer, for somebody who only looks.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// How long after its ttl a place is over for those, too, who have seen it for no time at all. It is renewed
/// three times in a ttl: only a clock that jumps by two thirds of one, and this, makes a live one look so
/// old.
const OVERDUE: Duration = Duration::from_secs(1);

/// One who waits for a lease in order: see [`LockManager::turn`](super::LockManager::turn).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standby {
    /// How much it is wanted as the leader.
    pub priority: Priority,
    /// The lease by which it waits.
    pub place: Lease,
}

impl Standby {
    /// What somebody waits for, and how, if that is what this lease is held for.
    #[must_use]
    pub fn read(place: &Lease) -> Option<(LeaseName, Self)> {
        // From the end: a lease that is waited for, and an id, may have names like those of places.
        let place_of_anybody = place.name.as_str().strip_suffix(place.holder.id.as_str())?;
        let (name, _) = place_of_anybody.rsplit_once(CANDIDATES)?;
        let name = LeaseName::new(name).ok()?;
        let standby = Self::read_in(&queue_of(&name), place)?;
        Some((name, standby))
    }

    fn read_in(queue: &str, place: &Lease) -> Option<Self> {
        let (priority, _id) = place.name.as_str().strip_prefix(queue)?.split_once('/')?;
        let priority = priority.parse().ok()?;
        let waits_here = place_of(queue, priority, &place.holder.id).is_ok_and(|own| own == place.name);
        waits_here.then(|| Self {
            priority,
            place: place.clone(),
        })
    }

    /// Those who wait for a lease in order, the next one first; those who may not lead come last. Left out is
    /// whose place has not been renewed for its ttl and a second.
    ///
    /// # Errors
    /// The store cannot be read, has not answered a request within 10 s, or cannot tell of a record who has
    /// it, as a quorum without enough of its members. A record that cannot be understood is left out: nobody
    /// waits by it.
    pub async fn list(store: &SharedStore, name: &LeaseName) -> Result<Vec<Self>, StoreError> {
        ranked(store, &queue_of(name), ANSWER_TIME_MAX, None).await
    }

    /// Calls it to the front: its turn is the next, before all with a higher priority, for as long as it
    /// waits this time. It learns of it with its next renewal, or by its watch. Answers whether it still
    /// waited.
    ///
    /// # Errors
    /// The store did not note it.
    pub async fn call(&self, store: &SharedStore) -> Result<bool, StoreError> {
        let ask = Ask {
            name: self.place.name.clone(),
            token: self.place.token,
        };
        Ok(store.ask(&ask).await? == Asked::Noted)
    }

    /// Its label.
    #[must_use]
    pub fn candidate(&self) -> &CandidateId {
        &self.place.holder.id
    }

    /// Whether it was [called](Self::call) to the front.
    #[must_use]
    pub fn is_called(&self) -> bool {
        self.place.asked_to_step_down
    }

    /// Puts those who wait for one lease in order, the next one first.
    pub fn rank(standbys: &mut [Self]) {
        standbys.sort_by(|one, other| one.key().cmp(&other.key()));
    }

    /// Who goes before whom: lower first. Those who are called before all others, then the higher priority,
    /// then whoever came first, then the name; those who may not lead come last.
    fn key(&self) -> (bool, bool, Reverse<Priority>, FencingToken, &LeaseName) {
        (
            !self.priority.may_lead(),
            !self.is_called(),
            Reverse(self.priority),
            self.place.token,
            &self.place.name,
        )
    }
}

/// Where those wait who wait for this lease.
pub(super) fn queue_of(name: &LeaseName) -> String {
    format!("{name}{CANDIDATES}")
}

/// The lease by which a candidate waits.
fn place_of(queue: &str, priority: Priority, id: &CandidateId) -> Result<LeaseName, NameError> {
    LeaseName::new(format!("{queue}{priority}/{id}"))
}

/// How the names of all places of a candidate end, in whatever queues.
pub(super) fn places_end(priority: Priority, id: &CandidateId) -> String {
    format!("{CANDIDATES}{priority}/{id}")
}

/// The lease by which this process waits for a lease.
///
/// # Errors
/// The two names together are too long: it says how long that of the lease may be.
pub(super) fn own_place(
    name: &LeaseName,
    priority: Priority,
    id: &CandidateId,
) -> Result<LeaseName, NameError> {
    place_of(&queue_of(name), priority, id).map_err(|error| {
        let what = "with this candidate id, the name of a fair lock";
        too_long_by(error, what, name.as_str())
    })
}

/// Whether there is a name at all whose place by this id is not too long.
///
/// # Errors
/// How long the id may be.
pub(super) fn check_room_for_place(priority: Priority, id: &CandidateId) -> Result<(), NameError> {
    let shortest = format!("a{CANDIDATES}");
    let place = place_of(&shortest, priority, id);
    place.map(drop).map_err(|error| {
        let what = "where locks are fair, the candidate id (with its owner tag)";
        too_long_by(error, what, id.as_str())
    })
}

/// Says of one part of a name that was too long as a whole how long that part may be.
fn too_long_by(error: NameError, what: &'static str, part: &str) -> NameError {
    let NameFault::TooLong { bytes, bytes_max } = error.fault else {
        return error;
    };
    let beginning = part
        .chars()
        .take(SHOWN_CHARACTERS_MAX)
        .flat_map(char::escape_debug);
    NameError {
        what,
        // It may be a URL.
        shown: match error.shown.is_empty() {
            true => String::new(),
            false => beginning.collect(),
        },
        fault: NameFault::TooLong {
            bytes: part.len(),
            bytes_max: bytes_max.saturating_sub(bytes - part.len()),
        },
    }
}

/// As [`Standby::list`]; a request takes at most `time_max`. Whose own place is `own` knows by itself whether
/// it has it. Of places that were given back, which are as many as processes that ever waited, most stores
/// tell nothing.
pub(super) async fn ranked(
    store: &SharedStore,
    queue: &str,
    time_max: Duration,
    own: Option<&LeaseName>,
) -> Result<Vec<Standby>, StoreError> {
    let timekeeper = store.traits().timekeeper;
    let waits = |place: &Lease| own == Some(&place.name) || !is_overdue(place, timekeeper);
    let mut standbys = Vec::new();
    let mut page = Page {
        selection: Selection::Held,
        ..Page::first(queue, PAGE)
    };
    loop {
        let subject = || format!("queue \"{queue}\"");
        let found = answer_within(time_max, subject, store.list(&page)).await?;
        for listed in &found.leases {
            match listed {
                Listed::Lease(place) if place.occupancy() == Occupancy::Held && waits(place) => {
                    standbys.extend(Standby::read_in(queue, place));
                }
                // Somebody may wait by what the store cannot tell now.
                Listed::Unreadable { error, .. } if error.fault != Fault::Unreadable => {
                    return Err(error.clone());
                }
                // Nobody waits by what cannot be understood: it can be neither extended nor taken.
                Listed::Lease(_) | Listed::Unreadable { .. } => {}
            }
        }
        match found.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    Standby::rank(&mut standbys);
    Ok(standbys)
}

/// Whether a place was last written so long ago that its process is gone, where the store does not tell of
/// that: a process that has just started would wait a whole ttl for one that died long ago. As nobody else
/// ever takes a place, so would every later process. Ages are told by clocks that may be set: if a place
/// that lives is passed over so, it is until its next renewal, and it loses its turn, not a lock.
fn is_overdue(place: &Lease, timekeeper: Timekeeper) -> bool {
    timekeeper == Timekeeper::Observer && place.renewed_ago > place.ttl.duration() + OVERDUE
}
