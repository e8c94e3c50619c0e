//! What the records of several members say together.

use super::Quorum;
use crate::read::Sighting;
use std::time::Duration;
use tenure_core::{Lease, Occupancy};

impl Quorum {
    /// Whether those that wait cannot change who holds the lease: a majority says so already, or none can.
    pub(super) fn is_agreed<'a>(
        &self,
        sightings: impl Iterator<Item = &'a Sighting> + Clone,
        waiting: usize,
    ) -> bool {
        let held = sightings
            .filter(|sighting| sighting.confirmed)
            .map(|sighting| &sighting.lease)
            .filter(|lease| lease.occupancy() == Occupancy::Held);
        let holding = |one: &Lease| held.clone().filter(|other| is_same(one, other)).count();
        let most = held.clone().map(holding).max().unwrap_or(0);
        most >= self.majority() || most + waiting < self.majority()
    }

    /// The lease by what these members have: the term with the highest token, held if a majority says so.
    ///
    /// What a candidate has taken in some members and not got does not count.
    pub(super) fn agreed<'a>(&self, sightings: impl IntoIterator<Item = &'a Sighting>) -> Option<Lease> {
        let terms: Vec<&Lease> = sightings
            .into_iter()
            .filter(|sighting| sighting.confirmed)
            .map(|sighting| &sighting.lease)
            .collect();
        let held = |lease: &&&Lease| lease.occupancy() == Occupancy::Held;
        // A token that a minority has confirmed was never anybody's, so it may be a later one's, too: what a majority
        // holds comes first.
        let holding = |one: &Lease| {
            terms
                .iter()
                .filter(held)
                .filter(|other| is_same(one, other))
                .count()
        };
        let last = terms.iter().max_by_key(|lease| {
            (
                holding(lease) >= self.majority(),
                lease.token,
                holding(lease),
                lease.remaining,
            )
        })?;
        let same: Vec<&Lease> = terms
            .iter()
            .filter(|lease| is_same(lease, last))
            .copied()
            .collect();
        let mut lease = (*last).clone();
        lease.released = same.iter().any(|lease| lease.released);
        // Held for as long as a majority holds it: then too few are free for anybody else.
        let mut remaining: Vec<Duration> = same
            .iter()
            .filter(|lease| lease.occupancy() == Occupancy::Held)
            .map(|lease| lease.remaining)
            .collect();
        remaining.sort_unstable_by(|a, b| b.cmp(a));
        lease.remaining = remaining.get(self.majority() - 1).copied().unwrap_or_default();
        if !lease.remaining.is_zero() {
            lease.released = false;
        }
        lease.asked_to_step_down =
            same.iter().filter(|lease| lease.asked_to_step_down).count() >= self.majority();
        lease.ttl = same.iter().map(|lease| lease.ttl).max().unwrap_or(lease.ttl);
        lease.renewed_ago = same
            .iter()
            .map(|lease| lease.renewed_ago)
            .min()
            .unwrap_or(lease.renewed_ago);
        lease.held_for = same
            .iter()
            .map(|lease| lease.held_for)
            .max()
            .unwrap_or(lease.held_for);
        Some(lease)
    }
}

fn is_same(one: &Lease, other: &Lease) -> bool {
    (one.token, one.attempt, one.holder.incarnation) == (other.token, other.attempt, other.holder.incarnation)
}
