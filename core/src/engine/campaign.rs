//! Taking a lease: attempt, wait for what the store says remains, attempt again.

use super::departure::not_ours;
use super::seat::{Campaign, Gate, Hint, Hold, Left, Search, Seat, Term, Wanted};
use super::{Actions, Departure, Engine, Event, InFlight, RequestId};
use crate::{Acquired, Certainty, Grant, Lease, LeaseName, Moment, StoreError};
use std::time::Duration;

impl Engine {
    pub(super) fn campaign(&mut self, now: Moment, name: LeaseName, wanted: Wanted) {
        match self.seats.get_mut(&name) {
            None => self.begin_campaign(now, name, wanted),
            Some(Seat::Departure(leaving)) => leaving.then = Some(wanted),
            Some(Seat::Search(search)) => search.then = Some(wanted),
            Some(Seat::Campaign(_) | Seat::Term(_)) => {}
        }
    }

    pub(super) fn begin_campaign(&mut self, now: Moment, name: LeaseName, wanted: Wanted) {
        let attempt = self.new_attempt();
        let campaign = Campaign {
            wanted,
            attempt,
            request: None,
            next_at: now,
            failures: 0,
            unresolved: false,
            reported: None,
            hint: None,
            heir_of: None,
        };
        self.seats.insert(name, Seat::Campaign(campaign));
    }

    /// Ends a campaign, by command or for what only a person can mend.
    pub(super) fn withdraw(
        &mut self,
        now: Moment,
        name: &LeaseName,
        error: Option<StoreError>,
        actions: &mut Actions,
    ) {
        match self.seats.get_mut(name) {
            Some(Seat::Campaign(campaign)) => {
                // A request that is under way is waited for, as long as for any: what it takes after a look
                // would be held by nobody who knows.
                let (under_way, unresolved) = (campaign.request, campaign.unresolved);
                let attempt = campaign.attempt;
                let heir_of = campaign.heir_of.take();
                if unresolved || under_way.is_some() {
                    let give_up_at = now.after(self.timing.surely_expired(self.timing.ttl));
                    let search = Search {
                        attempt,
                        request: under_way,
                        unresolved,
                        next_at: now,
                        give_up_at,
                        then: None,
                        heir_of,
                        error,
                    };
                    self.seats.insert(name.clone(), Seat::Search(search));
                } else if let Some(left) = heir_of {
                    actions.events.push(ended(name, error));
                    self.leave(now, name, left);
                } else {
                    self.seats.remove(name);
                    actions.events.push(ended(name, error));
                }
            }
            Some(Seat::Departure(leaving)) => leaving.then = None,
            Some(Seat::Search(search)) => search.then = None,
            Some(Seat::Term(_)) | None => {}
        }
    }

    pub(super) fn acquired(
        &mut self,
        now: Moment,
        request: RequestId,
        sent: &InFlight,
        result: Result<Acquired, StoreError>,
        actions: &mut Actions,
    ) {
        let Some(name) = sent.names.first() else { return };
        let campaign = match self.seats.get_mut(name) {
            Some(Seat::Campaign(campaign)) if campaign.request == Some(request) => campaign,
            Some(Seat::Search(search)) if search.request == Some(request) => {
                self.answered_after_withdrawal(now, name, result, actions);
                return;
            }
            Some(Seat::Campaign(_) | Seat::Search(_) | Seat::Term(_) | Seat::Departure(_)) | None => return,
        };
        campaign.request = None;
        match result {
            Ok(Acquired::Granted(grant)) => {
                let found = campaign.found_by(name, &grant);
                self.inherit(name, found, actions);
                self.granted(now, name, sent.sent_at, grant, actions);
            }
            Ok(Acquired::Held(lease)) => {
                let found = not_ours(name, campaign.is_unsure(), Some(Box::new(lease.clone())));
                self.inherit(name, found, actions);
                self.held_by_another(now, name, lease, actions);
            }
            Ok(Acquired::Superseded) => {
                // Only a new attempt can help, and mostly the first does: the members of a quorum were not of
                // one mind about this one. Where the record knows a later attempt of this incarnation, as
                // this process was copied or set back with its memory, it is said again and again.
                let failures = campaign.failures.saturating_add(1);
                campaign.failures = failures;
                campaign.unresolved = false;
                // Nothing is said by that of a term that is handed on: that is for the next answer.
                if let Some(left) = &mut campaign.heir_of {
                    left.is_doubtful = true;
                }
                let attempt = self.new_attempt();
                let pause = match failures {
                    1 => self.dice.between(Duration::ZERO, self.timing.wake_spread()),
                    _ => self.back_off(failures),
                };
                if let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) {
                    campaign.attempt = attempt;
                    campaign.next_at = now.after(pause);
                    let has_expired = |left: Left| left.give_up_at <= campaign.next_at;
                    if campaign.heir_of.is_some_and(has_expired) {
                        self.inherit(name, not_ours(name, true, None), actions);
                    }
                }
            }
            Err(error) => self.attempt_failed(now, name, error, actions),
        }
    }

    fn granted(
        &mut self,
        now: Moment,
        name: &LeaseName,
        sent_at: Moment,
        grant: Grant,
        actions: &mut Actions,
    ) {
        let trusted = sent_at.after(self.timing.trust(grant.ttl));
        let round_trip = now.since(sent_at);
        let renewal = self.first_interval(grant.ttl);
        let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) else {
            return;
        };
        if now >= trusted {
            // It came too late to be trusted. The same attempt asked again gets the same term, extended.
            campaign.unresolved = true;
            campaign.next_at = now;
            return;
        }
        let gate = campaign.wanted.progress_within.map(|within| Gate {
            within,
            last_progress: now,
            reported: false,
        });
        // From now and not from before sending: a short hold is no reason to ask again and again.
        let hold = campaign.wanted.max_hold.map(|max| Hold::from(now, max));
        let until = Hold::cap(hold, trusted);
        let term = Term {
            token: grant.token,
            attempt: campaign.attempt,
            granted: grant.ttl,
            sent_at,
            until,
            renew_at: sent_at.after(renewal),
            request: None,
            doubted: false,
            ending_since: None,
            gate,
            hold,
            last_error: None,
        };
        self.seats.insert(name.clone(), Seat::Term(term));
        actions.events.push(Event::Acquired {
            name: name.clone(),
            grant,
            until,
            round_trip,
        });
    }

    fn held_by_another(&mut self, now: Moment, name: &LeaseName, lease: Lease, actions: &mut Actions) {
        // A store clock that stepped back can say that more remains than the lease could ever last.
        let remaining = lease.remaining.min(self.timing.lasts_at_most(lease.ttl));
        // Not before half the spread: the leader renews on a grid that a look just after an expiry would
        // otherwise race with, and then cost a second look in one ttl.
        let spread = self.dice.between(self.timing.spread / 2, self.timing.spread);
        let soon = self.dice.between(Duration::ZERO, self.timing.wake_spread());
        let twin = lease.holder.id == self.candidate.id;
        let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) else {
            return;
        };
        campaign.failures = 0;
        campaign.unresolved = false;
        let outdated = match campaign.hint.take() {
            Some(Hint::Vacated(token)) => token >= lease.token,
            Some(Hint::Anything) => true,
            None => false,
        };
        campaign.next_at = if outdated {
            now.after(soon)
        } else {
            now.after(remaining + spread)
        };
        if campaign.reported != Some(lease.token) {
            campaign.reported = Some(lease.token);
            actions.events.push(Event::Standby { lease, twin });
        }
    }

    fn attempt_failed(&mut self, now: Moment, name: &LeaseName, error: StoreError, actions: &mut Actions) {
        let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) else {
            return;
        };
        campaign.unresolved |= error.certainty == Certainty::Unknown;
        if error.fault.is_final() {
            self.withdraw(now, name, Some(error), actions);
            return;
        }
        let failures = campaign.failures;
        campaign.failures = failures.saturating_add(1);
        campaign.hint = None;
        // Whoever hears of this failure is to hear when it is over, though the holder is the same.
        campaign.reported = None;
        if let Some(Seat::Campaign(campaign)) = self.seats.get(name)
            && let Some(left) = campaign.heir_of
            && left.give_up_at <= now.after(self.timing.retry_every)
        {
            // The term that was handed on has expired by itself by the next try, as a release is given up.
            let departure = Departure::Unconfirmed {
                error: error.clone(),
                remaining: left.give_up_at.since(now),
            };
            self.inherit(name, departure, actions);
        }
        let retry_in = self.back_off(failures);
        if let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) {
            campaign.next_at = now.after(retry_in);
        }
        actions.events.push(Event::AttemptFailed {
            name: name.clone(),
            error,
            retry_in,
        });
    }
}

/// How a campaign's end is reported.
pub(super) fn ended(name: &LeaseName, error: Option<StoreError>) -> Event {
    match error {
        Some(error) => Event::CampaignEnded {
            name: name.clone(),
            error,
        },
        None => Event::Withdrawn { name: name.clone() },
    }
}
