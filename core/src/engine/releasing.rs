//! Which releases are sent now, and together: of many that are due, few requests are under way at once.

use super::due::Due;
use super::seat::Seat;
use super::{Actions, Departure, Engine, Kind, Operation};
use crate::{Certainty, Fault, LeaseName, Moment, Release, Released, StoreError};
use std::time::Duration;

/// A release that is to be sent.
struct DueRelease {
    release: Release,
    /// Whether the last try failed.
    has_failed: bool,
}

impl Engine {
    pub(super) fn release_due_departures(&mut self, now: Moment, actions: &mut Actions) {
        self.send_releases(now, actions);
        self.give_up_expired_departures(now, actions);
    }

    /// Sends what there is a place for, the longest due first.
    fn send_releases(&mut self, now: Moment, actions: &mut Actions) {
        let mut places = self.in_flight.places_for_releases();
        if places == 0 {
            return;
        }
        let room = self.in_flight.room_for_releases();
        let due = self.releases_due(now, room);
        // Not beside one that has failed: whatever it failed of may befall all that are sent with it.
        // Whichever is due for longest goes first, so that neither keeps the other waiting for ever.
        let Some(first_has_failed) = due.first().map(|due| due.has_failed) else {
            return;
        };
        let (first, second): (Vec<DueRelease>, Vec<DueRelease>) = due
            .into_iter()
            .partition(|due| due.has_failed == first_has_failed);
        for mut alike in [first, second] {
            alike.truncate(places.saturating_mul(self.releases_together));
            // In the order of the names, so that what is sent together has one order only.
            alike.sort_unstable_by(|one, other| one.release.name.cmp(&other.release.name));
            for batch in alike.chunks(self.releases_together) {
                places -= 1;
                let releases: Vec<Release> = batch.iter().map(|due| due.release.clone()).collect();
                let names: Vec<LeaseName> = releases.iter().map(|release| release.name.clone()).collect();
                let operation = Operation::Release(releases);
                let id = self.send(now, Kind::Release, names.clone(), None, operation, actions);
                self.mark_sent(&names, id);
            }
        }
    }

    /// A request of so many got no answer in time. Sent again as it was, it would get none again, and all of
    /// it would expire.
    pub(super) fn releases_took_too_long(&mut self, count: usize) {
        self.releases_together = self.releases_together.min(count / 2).max(1);
    }

    /// What the answer to a request that released says of how many may go together.
    pub(super) fn learn_of_releases(&mut self, results: &[Result<Released, StoreError>]) {
        let is_late = |result: &Result<Released, StoreError>| matches!(result, Err(error) if error.fault == Fault::TimedOut);
        if results.iter().any(is_late) {
            self.releases_took_too_long(results.len());
        } else if results.iter().all(Result::is_ok) {
            let twice = self.releases_together.saturating_mul(2);
            self.releases_together = twice.min(self.batch_max.get());
        }
    }

    fn releases_due(&mut self, now: Moment, limit: usize) -> Vec<DueRelease> {
        let incarnation = self.candidate.incarnation;
        self.seats.longest_due(Due::Release, now, limit, |name, seat| {
            let Seat::Departure(leaving) = seat else {
                return None;
            };
            let release = Release {
                name: name.clone(),
                incarnation,
                token: leaving.token,
                attempt: leaving.attempt,
            };
            Some(DueRelease {
                release,
                has_failed: leaving.has_failed,
            })
        })
    }

    /// What still has no place when its lease has surely expired by itself is not sent any more: whoever
    /// waits for it waits no longer than for one that the store does not answer.
    fn give_up_expired_departures(&mut self, now: Moment, actions: &mut Actions) {
        loop {
            // The longest due have waited for longest, or were tried before: those behind them are looked at
            // when they come first.
            let first = self
                .seats
                .longest_due(Due::Release, now, 1, |name, seat| match seat {
                    Seat::Departure(leaving) => Some((name.clone(), leaving.give_up_at, leaving.unresolved)),
                    Seat::Campaign(_) | Seat::Term(_) | Seat::Search(_) => None,
                });
            let Some((name, _, unresolved)) = first.into_iter().find(|(_, give_up_at, _)| *give_up_at <= now)
            else {
                return;
            };
            let error = StoreError {
                fault: Fault::TimedOut,
                certainty: if unresolved {
                    Certainty::Unknown
                } else {
                    Certainty::NotApplied
                },
                message: format!(
                    "lease \"{name}\": it has expired by itself while releases before it were not answered; is the store reachable?"
                ),
            };
            let departure = Departure::Unconfirmed {
                error,
                remaining: Duration::ZERO,
            };
            self.depart(now, &name, departure, actions);
        }
    }
}
