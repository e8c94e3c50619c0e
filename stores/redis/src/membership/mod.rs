//! Which servers are one quorum. Each member keeps its own id and those of all members, so that whoever names
//! others is noticed: two candidates whose lists of hosts differ could both find a majority.
//!
//! First each server is given an id, by whoever comes first. Who then finds all the servers of its list with
//! an id records the list in each of them that has none; when all have the same one, and none has a lease, as
//! of who leads by members of before, it is complete, which each keeps, too. No lease is taken before one has
//! told so: of two lists that share a server only one can become complete, as long as one that they share
//! keeps it. What is recorded is the ids, which two who come at the same time read alike; the hosts are
//! beside them for people, and for a server that came back at its host with nothing.

mod roster;
mod words;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub(crate) use roster::{
    Entry, FIELD_COMPLETE, FIELD_ID, FIELD_READMITTED, FIELD_ROSTER, Kept, MemberId, Roster,
};
pub(crate) use words::TWINS_REPAIR;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenure_core::StoreError;
use words::{other_quorum, stranger, twins};

/// The servers of one list of hosts, and what is known of who they are.
pub(crate) struct Membership {
    hosts: Vec<String>,
    known: Mutex<Known>,
    /// For who is about to record them anew.
    lets_all_in: bool,
    /// Who asks for leases has the members keep who they are; who only looks leaves them as they are.
    records: AtomicBool,
}

#[derive(Clone, Default)]
struct Known {
    roster: Option<Roster>,
    /// A member has told that all keep it.
    complete: bool,
    seats: Vec<Seat>,
}

/// What is known of the server at one place of the list.
#[derive(Clone, Default)]
struct Seat {
    id: Option<MemberId>,
    /// It has told what it keeps, if anything.
    met: bool,
    /// It keeps the roster.
    recorded: bool,
    /// It keeps that all members do.
    told: bool,
    /// It kept nothing any more when all members had kept it.
    forgot: bool,
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
            records: AtomicBool::new(false),
        }
    }

    /// That takes every server as a member.
    pub(crate) fn unchecked(hosts: Vec<String>) -> Self {
        Self {
            lets_all_in: true,
            ..Self::new(hosts)
        }
    }

    /// Whether every server is taken as a member.
    pub(crate) fn lets_all_in(&self) -> bool {
        self.lets_all_in
    }

    /// From now on the members are to keep who they are. Whether they were before.
    pub(crate) fn begin_to_record(&self) -> bool {
        self.records.swap(true, Ordering::Relaxed)
    }

    /// Whether the members are to keep who they are.
    pub(crate) fn records(&self) -> bool {
        self.records.load(Ordering::Relaxed)
    }

    /// The hosts of the list, in its order.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Whether a member has told that all keep the same roster, or did at one time: then no other list can
    /// become complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.lock().complete
    }

    /// Whether the server at this place is the member that it should be, by what it keeps. What it is to keep
    /// besides, if anything.
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid) for a server that is none of the members, or a member
    /// for the second time.
    pub(crate) fn admit(&self, place: usize, kept: Kept) -> Result<Option<Entry>, StoreError> {
        if self.lets_all_in {
            return Ok(None);
        }
        let mut known = self.lock();
        let judged = self.judge(&mut known, place, kept);
        let seat = &mut known.seats[place];
        seat.met = true;
        seat.refused = judged.as_ref().err().cloned();
        judged
    }

    fn judge(&self, known: &mut Known, place: usize, kept: Kept) -> Result<Option<Entry>, StoreError> {
        let host = &self.hosts[place];
        let is_recorded = kept.roster.is_some();
        let is_complete = is_recorded && kept.complete;
        let forgot = known.complete && !is_recorded;
        let (id, entry) = match (kept.roster, known.roster.clone()) {
            (Some(theirs), ours) => {
                let Some(id) = kept.id.filter(|id| theirs.has(id)) else {
                    return Err(other_quorum(host, &theirs, &self.hosts.join(",")));
                };
                match ours {
                    Some(ours) if !theirs.is(&ours) => {
                        return Err(other_quorum(host, &theirs, &ours.hosts()));
                    }
                    Some(_) => {}
                    None => self.learn(known, place, &theirs)?,
                }
                let roster = known.roster.clone().filter(|_| known.complete && !is_complete);
                let told = roster.map(|roster| Entry {
                    id: id.clone(),
                    roster: Some(roster),
                    complete: true,
                });
                (id, told)
            }
            // It has come to the quorum before it was recorded, or has forgotten everything.
            (None, Some(ours)) => {
                let is_free = |id: &&MemberId| known.holder(id).is_none_or(|holder| holder == place);
                let own = kept.id.as_ref().filter(|id| ours.has(id));
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
        (seat.id, seat.recorded, seat.told) = (Some(id), is_recorded, is_complete);
        if forgot && !seat.forgot {
            tracing::warn!(
                %host,
                "the member of the quorum keeps nothing of it any more, and counts all the same: two may lead for the longest ttl, and \
                 for as long as another server runs that was there before"
            );
            seat.forgot = true;
        }
        known.complete |= is_complete;
        Ok(entry)
    }

    /// Takes over what a first member has recorded, if the others that are known can be of it.
    fn learn(&self, known: &mut Known, place: usize, theirs: &Roster) -> Result<(), StoreError> {
        let others = known.seats.iter().enumerate();
        let mut others = others.filter(|(other, seat)| *other != place && seat.id.is_some());
        let can_be = |(other, seat): (usize, &Seat)| {
            let own = seat.id.as_ref().filter(|id| theirs.has(id));
            own.or_else(|| theirs.at(&self.hosts[other])).is_some()
        };
        if theirs.count() != self.hosts.len() || !others.all(can_be) {
            let hosts = self.hosts.join(",");
            return Err(other_quorum(&self.hosts[place], theirs, &hosts));
        }
        for (other, seat) in known.seats.iter_mut().enumerate() {
            if seat.id.as_ref().is_some_and(|id| !theirs.has(id)) {
                seat.id = theirs.at(&self.hosts[other]).cloned();
            }
        }
        known.roster = Some(theirs.clone());
        Ok(())
    }

    /// Whether all members keep the same roster, by what each has told last.
    pub(crate) fn is_recorded(&self) -> bool {
        self.lock().seats.iter().all(|seat| seat.recorded)
    }

    /// What each server that was met is to keep and does not yet, by its place; nothing while nobody has told
    /// of the list and one server was never met.
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

    /// The places of servers that have told nothing of themselves when nobody had told of the quorum yet.
    pub(crate) fn nameless(&self) -> Vec<usize> {
        let known = self.lock();
        let seats = known.seats.iter().enumerate();
        let nameless = seats.filter(|(_, seat)| seat.met && seat.id.is_none());
        nameless.map(|(place, _)| place).collect()
    }

    /// What those that keep the list, and not yet that it is complete, are to keep when it is.
    pub(crate) fn completed(&self) -> Vec<(usize, Entry)> {
        let known = self.lock();
        let entries = known.roster.as_ref().map_or_else(Vec::new, |roster| {
            known.entries(roster, |seat| seat.recorded && !seat.told)
        });
        let complete = |(place, entry)| {
            let complete = Entry {
                complete: true,
                ..entry
            };
            (place, complete)
        };
        entries.into_iter().map(complete).collect()
    }

    /// Whether a member has forgotten, while this process has known the quorum, what it had confirmed.
    pub(crate) fn has_forgotten(&self) -> bool {
        let known = self.lock();
        let keeps_nothing = |seat: &Seat| known.complete && seat.met && !seat.recorded;
        known.seats.iter().any(|seat| seat.forgot || keeps_nothing(seat))
    }

    /// Which member the server at this place is, as far as it has told.
    pub(crate) fn id_at(&self, place: usize) -> Option<MemberId> {
        self.lock().seats[place].id.clone()
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
