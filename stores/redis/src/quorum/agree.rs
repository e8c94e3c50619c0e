//! What the records of several members say together.

use super::Quorum;
use crate::read::Sighting;
use std::time::Duration;
use tenure_core::{Lease, Occupancy};

/// A lease by the records of several members.
pub(super) enum Agreed {
    /// None of them knows of a term.
    Never,
    /// The last term, or the one that is held.
    Term(Lease),
    /// With the members that were not heard, this one may hold it, and another just so.
    Open(Lease),
}

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

    /// The lease by what these members have, where so many others were not heard: the term with the highest
    /// token, held if a majority says so, or does together with those.
    ///
    /// What a candidate has taken in some members and not got does not count, and hides no term from before:
    /// the highest token that was granted is known to one member of each majority.
    pub(super) fn agreed<'a>(
        &self,
        sightings: impl IntoIterator<Item = &'a Sighting>,
        unheard: usize,
    ) -> Agreed {
        let (whole, before): (Vec<&Sighting>, Vec<&Sighting>) =
            sightings.into_iter().partition(|sighting| sighting.confirmed);
        // Of two records of a term, the later in this order is shown: the one that is whole.
        let terms = before.into_iter().chain(whole);
        let terms: Vec<&Lease> = terms.filter_map(Sighting::term).collect();
        let held = |lease: &&&Lease| lease.occupancy() == Occupancy::Held;
        let holding = |one: &Lease| {
            terms
                .iter()
                .filter(held)
                .filter(|other| is_same(one, other))
                .count()
        };
        let is_held = |one: &Lease| holding(one) >= self.majority();
        // Shown as held, too, as its own process gives nothing back that is not; and while it may be, too few
        // are free for anybody else.
        let may_be_held = |one: &Lease| holding(one) > 0 && holding(one) + unheard >= self.majority();
        // A token that a minority has confirmed was never anybody's, so it may be a later one's, too: what a
        // majority holds comes first.
        let last = terms.iter().max_by_key(|lease| {
            (
                is_held(lease),
                may_be_held(lease),
                lease.token,
                holding(lease),
                lease.remaining,
            )
        });
        let Some(last) = last else {
            return Agreed::Never;
        };
        let is_open = !is_held(last)
            && may_be_held(last)
            && terms
                .iter()
                .any(|other| may_be_held(other) && !is_same(other, last));
        let same: Vec<&Lease> = terms
            .iter()
            .filter(|lease| is_same(lease, last))
            .copied()
            .collect();
        let mut lease = (*last).clone();
        lease.released = same.iter().any(|lease| lease.released);
        // Held for as long as a majority holds it, or may.
        let needed = match is_held(last) {
            true => self.majority(),
            false => self.majority().saturating_sub(unheard).max(1),
        };
        let mut remaining: Vec<Duration> = same
            .iter()
            .filter(|lease| lease.occupancy() == Occupancy::Held)
            .map(|lease| lease.remaining)
            .collect();
        remaining.sort_unstable_by(|a, b| b.cmp(a));
        lease.remaining = remaining.get(needed - 1).copied().unwrap_or_default();
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
        match is_open {
            true => Agreed::Open(lease),
            false => Agreed::Term(lease),
        }
    }
}

fn is_same(one: &Lease, other: &Lease) -> bool {
    (one.token, one.attempt, one.holder.incarnation) == (other.token, other.attempt, other.holder.incarnation)
}
