use super::{Kind, RequestId, Wake, WakeReason};
use crate::{LeaseName, Moment};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// A request that was not answered yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct InFlight {
    pub(super) sent_at: Moment,
    pub(super) give_up_at: Moment,
    pub(super) kind: Kind,
    pub(super) names: Vec<LeaseName>,
}

/// Every request that was not answered yet, and when they are given up.
#[derive(Clone, Default, Debug)]
pub(super) struct Requests {
    by_id: BTreeMap<RequestId, InFlight>,
    time_outs: BTreeSet<(Moment, RequestId)>,
    /// How many of them renew.
    renewals: usize,
    /// How many of them release.
    releases: usize,
    /// How many leases those release.
    releasing: usize,
}

/// Most requests under way at once that renew.
///
/// All of a beat at once would be a hundred requests for 100,000 leases in batches of a thousand. They would
/// wait for each other in the store or before it, and every one's time-out would run meanwhile: a store that
/// is slow, but does answer, would seem to be silent. More would also leave no connection to acquisitions and
/// releases: the MongoDB store has 16. Fewer would let requests that hang hold up their neighbours: with
/// twelve places, in a beat of a hundred requests half may hang for the whole time-out (a tenth of the ttl),
/// and still every other one is sent within two fifths of the ttl, before the doubt of any of its leases
/// (half of the ttl after their renewal was due).
pub(super) const RENEWALS_IN_FLIGHT_MAX: usize = 12;

/// Most requests under way at once that release.
///
/// Who drops a thousand guards has each of them released by itself, and would take every connection of the
/// store from the renewals of what is kept. The first few go at once; what comes while they are under way
/// goes together.
pub(super) const RELEASES_IN_FLIGHT_MAX: usize = 12;

/// Most leases at once that requests under way release.
///
/// A store may need a request for each (MongoDB and NATS do), and all must be answered before the time-out,
/// which is a second with a ttl of ten: 250 a second are what a replica set confirms that takes 30 ms for
/// each, eight at a time.
pub(super) const RELEASING_MAX: usize = 250;

impl Requests {
    pub(super) fn insert(&mut self, id: RequestId, sent: InFlight) {
        self.time_outs.insert((sent.give_up_at, id));
        self.renewals += usize::from(sent.kind == Kind::Renew);
        if sent.kind == Kind::Release {
            self.releases += 1;
            self.releasing += sent.names.len();
        }
        self.by_id.insert(id, sent);
    }

    pub(super) fn remove(&mut self, id: RequestId) -> Option<InFlight> {
        let sent = self.by_id.remove(&id)?;
        self.time_outs.remove(&(sent.give_up_at, id));
        self.renewals -= usize::from(sent.kind == Kind::Renew);
        if sent.kind == Kind::Release {
            self.releases -= 1;
            self.releasing -= sent.names.len();
        }
        Some(sent)
    }

    /// How many more requests that renew may be sent now.
    pub(super) fn places_for_renewals(&self) -> usize {
        RENEWALS_IN_FLIGHT_MAX.saturating_sub(self.renewals)
    }

    /// How many more requests that release may be sent now.
    pub(super) fn places_for_releases(&self) -> usize {
        match self.room_for_releases() {
            0 => 0,
            _ => RELEASES_IN_FLIGHT_MAX.saturating_sub(self.releases),
        }
    }

    /// How many more leases those may release.
    pub(super) fn room_for_releases(&self) -> usize {
        RELEASING_MAX.saturating_sub(self.releasing)
    }

    pub(super) fn contains(&self, id: RequestId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Those that are given up by `now`, in the order in which they were sent.
    pub(super) fn overdue(&self, now: Moment) -> Vec<RequestId> {
        let due = self.time_outs.iter().take_while(|(at, _)| *at <= now);
        let mut ids: Vec<RequestId> = due.map(|(_, id)| *id).collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn next_wake(&self) -> Option<Wake> {
        let (at, _) = self.time_outs.first()?;
        Some(Wake {
            at: *at,
            why: WakeReason::RequestTimeout,
        })
    }

    /// Gives every request another number and content.
    pub(super) fn change_all(
        &mut self,
        mut change: impl FnMut(RequestId, InFlight) -> (RequestId, InFlight),
    ) {
        for (id, sent) in std::mem::take(self).by_id {
            let (id, sent) = change(id, sent);
            self.insert(id, sent);
        }
    }
}

/// The rest is a function of the requests.
impl PartialEq for Requests {
    fn eq(&self, other: &Self) -> bool {
        self.by_id == other.by_id
    }
}

impl Eq for Requests {}

impl Hash for Requests {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.by_id.hash(state);
    }
}
