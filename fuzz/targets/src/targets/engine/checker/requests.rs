//! Which requests are allowed when.

use super::seat::Seat;
use super::{Checker, Open, Violation, broken};
use tenure_core::{Acquire, LeaseName, Moment, Operation, Release, Renew, Request, RequestId};

impl Checker {
    pub(super) fn take_request(&mut self, request: &Request) -> Result<(), Violation> {
        let id = request.id;
        if self.last_request.is_some_and(|last| last >= id) {
            return broken("requests have numbers of their own", "all", request);
        }
        self.last_request = Some(id);
        let latest = self.now.after(self.timing.request_timeout());
        let past = request.give_up_at <= self.now && self.now != super::LAST;
        if request.give_up_at > latest || past {
            return broken("G19 a request is given up within its time-out", "all", request);
        }
        match &request.operation {
            Operation::Acquire(acquire) => self.may_acquire(id, acquire)?,
            Operation::Renew(renewals) => {
                self.fits_batch(renewals.len(), request)?;
                for renew in renewals {
                    self.may_renew(id, request.give_up_at, renew)?;
                }
            }
            Operation::Release(releases) => {
                self.fits_batch(releases.len(), request)?;
                for release in releases {
                    self.may_release(id, release)?;
                }
            }
            Operation::Look(name) => self.may_look(id, name)?,
        }
        let open = Open {
            sent_at: self.now,
            give_up_at: request.give_up_at,
            operation: request.operation.clone(),
        };
        self.open.insert(id, open);
        Ok(())
    }

    fn fits_batch(&self, count: usize, request: &Request) -> Result<(), Violation> {
        if (1..=self.batch_max.get()).contains(&count) {
            return Ok(());
        }
        broken("a batch is as large as the store takes", "all", request)
    }

    fn may_acquire(&mut self, id: RequestId, acquire: &Acquire) -> Result<(), Violation> {
        let name = &acquire.name;
        let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) else {
            return broken("only a campaign acquires", name, acquire);
        };
        if campaign.open.is_some() {
            return broken("one request at a time", name, acquire);
        }
        // Numbers are given when a campaign begins, and two campaigns may send in either order.
        let is_later = self
            .last_attempts
            .get(name)
            .is_none_or(|last| acquire.attempt > *last);
        let is_unused = !self.last_attempts.values().any(|last| *last == acquire.attempt);
        match campaign.attempt {
            Some(attempt) if attempt == acquire.attempt => {}
            None if is_later && is_unused => {
                self.last_attempts.insert(name.clone(), acquire.attempt);
            }
            Some(_) | None => return broken("G5 the attempt rotates with every campaign", name, acquire),
        }
        if acquire.candidate != self.candidate || acquire.ttl != self.timing.ttl() {
            return broken("a request says who asks and for how long", name, acquire);
        }
        campaign.attempt = Some(acquire.attempt);
        campaign.open = Some(id);
        Ok(())
    }

    fn may_renew(&mut self, id: RequestId, give_up_at: Moment, renew: &Renew) -> Result<(), Violation> {
        let name = &renew.name;
        let Some(Seat::Term(term)) = self.seats.get_mut(name) else {
            return broken("G9 only a term is renewed", name, renew);
        };
        if term.open.is_some() {
            return broken("one request at a time", name, renew);
        }
        if term.is_held_to_the_last() {
            return broken(
                "G22 nothing is renewed past the longest hold",
                name,
                (renew, term),
            );
        }
        if give_up_at > term.until {
            return broken("G19 no request outlasts its term", name, (renew, give_up_at));
        }
        let ours = renew.incarnation == self.candidate.incarnation && renew.ttl == self.timing.ttl();
        if !ours || renew.token != term.token || renew.attempt != term.attempt {
            return broken("a renewal is of the very term", name, renew);
        }
        term.open = Some(id);
        Ok(())
    }

    fn may_release(&mut self, id: RequestId, release: &Release) -> Result<(), Violation> {
        let name = &release.name;
        let Some(Seat::Departure(leaving)) = self.seats.get_mut(name) else {
            return broken("G10 a release follows the end of the work", name, release);
        };
        if leaving.open.is_some() {
            return broken("one request at a time", name, release);
        }
        let ours = release.incarnation == self.candidate.incarnation;
        if !ours || release.token != leaving.token || release.attempt != leaving.attempt {
            return broken("a release is of the very term", name, release);
        }
        leaving.open = Some(id);
        Ok(())
    }

    fn may_look(&mut self, id: RequestId, name: &LeaseName) -> Result<(), Violation> {
        match self.seats.get_mut(name) {
            Some(Seat::Search(search)) if search.open.is_none() => {
                search.open = Some(id);
                Ok(())
            }
            seat => broken("G13 only what a campaign left is looked for", name, seat),
        }
    }
}
