//! What an input and the passing of time change, and which events they make due.

use super::seat::{Campaign, Due, Ending, Search, Seat, Told, Wanted};
use super::{Checker, Open, Violation, broken};
use tenure_core::{
    Acquired, Attempt, Cause, Certainty, Change, Command, Event, FencingToken, Input, Lease, LeaseName,
    Moment, Occupancy, Operation, Released, Renewed, Reply, RequestId, StoreError, WatchEvent, Wish,
};

impl Checker {
    /// Deadlines come before anything else: takes the events that tell of them; answers how many there are.
    pub(super) fn take_overdue_terms(&mut self, events: &[Event]) -> Result<usize, Violation> {
        let now = self.now;
        let overdue = self.seats.iter().filter_map(|(name, seat)| match seat {
            Seat::Term(term) if term.until <= now => Some((name.clone(), Due::End(Ending::Overdue))),
            Seat::Idle | Seat::Campaign(_) | Seat::Term(_) | Seat::Departure(_) | Seat::Search(_) => None,
        });
        self.due = overdue.collect();
        let told = events
            .iter()
            .take_while(|event| {
                matches!(
                    event,
                    Event::Ended {
                        cause: Cause::Deadline(_) | Cause::NoProgress(_) | Cause::MaxHold(_),
                        ..
                    }
                )
            })
            .count();
        for event in &events[..told] {
            self.take_event(event)?;
        }
        match self.due.first() {
            Some((name, due)) => broken("G12 a term ends at its deadline, first of all", name, due),
            None => Ok(told),
        }
    }

    pub(super) fn take_input(&mut self, input: &Input) {
        match input {
            Input::Tick | Input::Watch(WatchEvent::Gap) => {}
            Input::Answer { request, reply } => {
                // One that was given up, or answered before, changes nothing.
                if let Some(open) = self.open.remove(request) {
                    self.take_answer(*request, &open, Some(reply));
                }
            }
            Input::Watch(WatchEvent::Changed { name, change, token }) => {
                if let (Some(Seat::Term(term)), Some(token)) = (self.seats.get_mut(name), token) {
                    match change {
                        Change::Taken if *token > term.token => {
                            self.due.push((name.clone(), Due::End(Ending::Succeeded)));
                        }
                        Change::Asked if *token == term.token && !term.ending => {
                            self.due.push((name.clone(), Due::Ask));
                        }
                        Change::Taken | Change::Asked | Change::Vacated => {}
                    }
                }
            }
            Input::Command(command) => self.take_command(command),
        }
    }

    fn take_command(&mut self, command: &Command) {
        match command {
            Command::Campaign {
                name,
                progress_within,
                max_hold,
                ..
            } => {
                let wanted = Wanted {
                    progress_within: *progress_within,
                    max_hold: *max_hold,
                };
                match self.seats.entry(name.clone()).or_default() {
                    seat @ Seat::Idle => *seat = Seat::Campaign(Campaign::new(wanted)),
                    Seat::Departure(leaving) => leaving.then = Some(wanted),
                    Seat::Search(search) => search.then = Some(wanted),
                    Seat::Campaign(_) | Seat::Term(_) => {}
                }
            }
            Command::Withdraw { name } => match self.seats.get_mut(name) {
                Some(Seat::Campaign(_)) => self.withdraw(name, false),
                Some(Seat::Departure(leaving)) => leaving.then = None,
                Some(Seat::Search(search)) => search.then = None,
                Some(Seat::Idle | Seat::Term(_)) | None => {}
            },
            Command::StepDown { name, token } => {
                if let Some(Seat::Term(term)) = self.seats.get_mut(name)
                    && term.token == *token
                {
                    term.ending = true;
                }
            }
            Command::WorkEnded { name, token } => {
                if let Some(Seat::Term(term)) = self.seats.get(name)
                    && term.token == *token
                {
                    self.due.push((name.clone(), Due::End(Ending::GivenBack)));
                }
            }
            Command::HandOn {
                name,
                token,
                progress_within,
                max_hold,
                ..
            } => {
                let wanted = Wanted {
                    progress_within: *progress_within,
                    max_hold: *max_hold,
                };
                if let Some(Seat::Term(term)) = self.seats.get(name)
                    && term.token == *token
                {
                    let due = Due::End(Ending::HandedOn(wanted));
                    self.due.push((name.clone(), due));
                }
            }
            Command::DeadlineSeen { name, token } => {
                if let Some(Seat::Term(term)) = self.seats.get(name)
                    && term.token == *token
                {
                    self.due.push((name.clone(), Due::End(Ending::Overdue)));
                }
            }
            Command::Progress { .. } | Command::Extend { .. } => {}
        }
    }

    /// G13: a campaign may only end in silence if none of its requests can have been applied unnoticed.
    fn withdraw(&mut self, name: &LeaseName, misconfigured: bool) {
        let Some(Seat::Campaign(campaign)) = self.seats.get(name) else {
            return;
        };
        match campaign
            .attempt
            .filter(|_| campaign.unresolved || campaign.open.is_some())
        {
            Some(attempt) => {
                let search = Search {
                    attempt,
                    misconfigured,
                    // A look before its answer might see too little.
                    open: campaign.open,
                    unresolved: campaign.unresolved,
                    then: None,
                    heir_of: campaign.heir_of,
                    is_doubtful: campaign.is_doubtful,
                };
                self.seats.insert(name.clone(), Seat::Search(search));
            }
            None => self.due.push((
                name.clone(),
                Due::Settle {
                    misconfigured,
                    orphan: campaign.heir_of,
                },
            )),
        }
    }

    /// Requests that nobody answered in time: nothing is known of them.
    pub(super) fn take_timeouts(&mut self) {
        let late: Vec<RequestId> = self
            .open
            .iter()
            .filter(|(_, open)| open.give_up_at <= self.now)
            .map(|(id, _)| *id)
            .collect();
        for request in late {
            if let Some(open) = self.open.remove(&request) {
                self.take_answer(request, &open, None);
            }
        }
    }

    /// Takes in a reply; `None` for a request that was given up. A reply of another kind is as good as none.
    fn take_answer(&mut self, request: RequestId, open: &Open, reply: Option<&Reply>) {
        for (index, name) in open.names().iter().enumerate() {
            match (&open.operation, reply) {
                (Operation::Acquire(_), Some(Reply::Acquired(result))) => {
                    self.acquired(request, name, open.sent_at, Some(result));
                }
                (Operation::Acquire(_), _) => self.acquired(request, name, open.sent_at, None),
                (Operation::Renew(_), Some(Reply::Renewed(results))) => {
                    self.renewed(request, name, open.sent_at, results.get(index));
                }
                (Operation::Renew(_), _) => self.renewed(request, name, open.sent_at, None),
                (Operation::Release(_), Some(Reply::Released(results))) => {
                    self.released(request, name, results.get(index));
                }
                (Operation::Release(_), _) => self.released(request, name, None),
                (Operation::Look(_), Some(Reply::Looked(result))) => self.looked(request, name, Some(result)),
                (Operation::Look(_), _) => self.looked(request, name, None),
            }
        }
    }

    fn acquired(
        &mut self,
        request: RequestId,
        name: &LeaseName,
        sent_at: Moment,
        result: Option<&Result<Acquired, StoreError>>,
    ) {
        let campaign = match self.seats.get_mut(name) {
            Some(Seat::Campaign(campaign)) if campaign.open == Some(request) => campaign,
            Some(Seat::Search(search)) if search.open == Some(request) => {
                return self.acquired_after_withdrawal(name, result);
            }
            Some(Seat::Idle | Seat::Campaign(_) | Seat::Term(_) | Seat::Departure(_) | Seat::Search(_))
            | None => return,
        };
        campaign.open = None;
        if let Some((token, _)) = campaign.heir_of {
            let not_ours = Told::not_ours(campaign.unresolved || campaign.is_doubtful);
            let told = match result {
                Some(Ok(Acquired::Held(lease))) if lease.name != *name => Told::GivenUp,
                Some(Ok(Acquired::Held(_))) => not_ours,
                Some(Ok(Acquired::Granted(grant))) => match &grant.predecessor {
                    Some(before) if before.token > token && !grant.again => not_ours,
                    Some(_) | None => Told::Vacated,
                },
                // The next answer says what became of it.
                Some(Ok(Acquired::Superseded) | Err(_)) | None => Told::GivenUp,
            };
            let misconfigured = matches!(result, Some(Err(error)) if error.fault.is_final());
            if !misconfigured {
                self.due.push((name.clone(), Due::Inherit { token, told }));
            }
        }
        match result {
            Some(Ok(Acquired::Granted(grant))) => {
                let until = sent_at.after(self.timing.trust(grant.ttl));
                match campaign.attempt {
                    Some(attempt) if self.now < until => {
                        self.due.push((
                            name.clone(),
                            Due::Begin {
                                grant: grant.clone(),
                                until,
                                over_at: campaign.wanted.over_at(self.now),
                                attempt,
                            },
                        ));
                    }
                    Some(_) | None => campaign.unresolved = true,
                }
            }
            Some(Ok(Acquired::Held(lease))) if lease.name != *name => campaign.unresolved = true,
            Some(Ok(Acquired::Held(lease))) => {
                campaign.unresolved = false;
                self.due
                    .push((name.clone(), Due::Standby { lease: lease.clone() }));
            }
            Some(Ok(Acquired::Superseded)) => {
                campaign.unresolved = false;
                campaign.is_doubtful = campaign.heir_of.is_some();
                campaign.attempt = None;
            }
            Some(Err(error)) => {
                campaign.unresolved |= error.certainty == Certainty::Unknown;
                if error.fault.is_final() {
                    self.withdraw(name, true);
                }
            }
            None => campaign.unresolved = true,
        }
    }

    /// What a try took whose campaign is over is given back, without a look.
    fn acquired_after_withdrawal(&mut self, name: &LeaseName, result: Option<&Result<Acquired, StoreError>>) {
        let Some(Seat::Search(search)) = self.seats.get_mut(name) else {
            return;
        };
        search.open = None;
        let (misconfigured, heir_of) = (search.misconfigured, search.heir_of);
        let not_ours = Told::not_ours(search.unresolved || search.is_doubtful);
        let (orphan, told) = match result {
            Some(Ok(Acquired::Granted(grant))) => (Some((grant.token, search.attempt)), Some(Told::Vacated)),
            Some(Ok(Acquired::Held(lease))) if lease.name == *name => {
                let still = heir_of.filter(|left| self.is_still_held(*left, lease));
                (still, still.is_none().then_some(not_ours))
            }
            Some(Ok(Acquired::Superseded)) => {
                if heir_of.is_some() {
                    search.is_doubtful = true;
                    return;
                }
                (None, None)
            }
            Some(Err(error)) if error.certainty == Certainty::NotApplied && !search.unresolved => {
                (heir_of, None)
            }
            // Only a look can tell.
            Some(Ok(Acquired::Held(_)) | Err(_)) | None => {
                let surely_not = |error: &StoreError| error.certainty == Certainty::NotApplied;
                search.unresolved |= !matches!(result, Some(Err(error)) if surely_not(error));
                return;
            }
        };
        if let (Some((token, _)), Some(told)) = (heir_of, told) {
            self.due.push((name.clone(), Due::Inherit { token, told }));
        }
        self.due.push((
            name.clone(),
            Due::Settle {
                misconfigured,
                orphan,
            },
        ));
    }

    fn is_still_held(&self, (token, attempt): (FencingToken, Attempt), lease: &Lease) -> bool {
        lease.holder.incarnation == self.candidate.incarnation
            && (lease.token, lease.attempt) == (token, attempt)
            && lease.occupancy() == Occupancy::Held
    }

    fn renewed(
        &mut self,
        request: RequestId,
        name: &LeaseName,
        sent_at: Moment,
        result: Option<&Result<Renewed, StoreError>>,
    ) {
        let Some(Seat::Term(term)) = self.seats.get_mut(name) else {
            return;
        };
        if term.open != Some(request) {
            return;
        }
        term.open = None;
        match result {
            Some(Ok(Renewed::Extended { ttl, wish })) => {
                let trusted = term.within_hold(sent_at.after(self.timing.trust(*ttl)));
                self.due.push((name.clone(), Due::Renew { trusted }));
                if trusted <= self.now {
                    // So little was granted that the term is over already.
                    self.due.push((name.clone(), Due::End(Ending::Overdue)));
                }
                if *wish == Wish::StepDown && !term.ending {
                    self.due.push((name.clone(), Due::Ask));
                }
            }
            Some(Ok(Renewed::Lost(Some(lease)))) if lease.name != *name => {}
            Some(Ok(Renewed::Lost(_))) => self.due.push((name.clone(), Due::End(Ending::Lost))),
            Some(Err(_)) | None => {}
        }
    }

    fn released(
        &mut self,
        request: RequestId,
        name: &LeaseName,
        result: Option<&Result<Released, StoreError>>,
    ) {
        let Some(Seat::Departure(leaving)) = self.seats.get_mut(name) else {
            return;
        };
        if leaving.open == Some(request) {
            leaving.open = None;
            let told = match result {
                Some(Ok(Released::NotYours(Some(lease)))) if lease.name != *name => Told::GivenUp,
                Some(Ok(Released::NotYours(_))) => Told::not_ours(leaving.unresolved),
                Some(Ok(Released::Vacated)) => Told::Vacated,
                Some(Err(_)) | None => Told::GivenUp,
            };
            let surely_not = |error: &StoreError| error.certainty == Certainty::NotApplied;
            leaving.unresolved |=
                told == Told::GivenUp && !matches!(result, Some(Err(error)) if surely_not(error));
            self.due.push((name.clone(), Due::Depart(told)));
        }
    }

    fn looked(
        &mut self,
        request: RequestId,
        name: &LeaseName,
        result: Option<&Result<Option<Lease>, StoreError>>,
    ) {
        let Some(Seat::Search(search)) = self.seats.get_mut(name) else {
            return;
        };
        if search.open != Some(request) {
            return;
        }
        search.open = None;
        let (attempt, misconfigured, heir_of) = (search.attempt, search.misconfigured, search.heir_of);
        let not_ours = Told::not_ours(search.unresolved || search.is_doubtful);
        let said = match result {
            Some(Ok(lease)) if lease.as_ref().is_none_or(|lease| lease.name == *name) => Some(lease.as_ref()),
            Some(_) | None => None,
        };
        let still = heir_of.filter(|left| {
            said.flatten()
                .is_some_and(|lease| self.is_still_held(*left, lease))
        });
        let ours = said.flatten().filter(|lease| {
            lease.holder.incarnation == self.candidate.incarnation
                && lease.attempt == attempt
                && lease.occupancy() == Occupancy::Held
        });
        if let Some((token, _)) = heir_of.filter(|_| still.is_none()) {
            let told = match (said, ours) {
                (None, _) => Told::GivenUp,
                (Some(_), Some(_)) => Told::Vacated,
                (Some(_), None) => not_ours,
            };
            self.due.push((name.clone(), Due::Inherit { token, told }));
        }
        let due = match said {
            Some(_) => Due::Settle {
                misconfigured,
                orphan: still.or_else(|| ours.map(|lease| (lease.token, attempt))),
            },
            None => Due::GiveUp { misconfigured },
        };
        self.due.push((name.clone(), due));
    }
}
