//! Which events are allowed when, and what they change.

use super::seat::{Campaign, Due, Ending, Leaving, Seat, Term, Wanted};
use super::{Checker, Violation, broken};
use tenure_core::{Attempt, Cause, Departure, Event, FencingToken, LeaseName};

impl Checker {
    pub(super) fn take_event(&mut self, event: &Event) -> Result<(), Violation> {
        match event {
            Event::Standby { lease, .. } => {
                // Told as it was said, even where the store spoke of another lease than was asked about.
                match self
                    .due
                    .iter()
                    .position(|(_, due)| matches!(due, Due::Standby { lease: said } if said == lease))
                {
                    Some(at) => drop(self.due.remove(at)),
                    None => return broken("a standby is told of what the store said", &lease.name, event),
                }
                Ok(())
            }
            Event::AttemptFailed { name, .. } => match self.seats.get(name) {
                Some(Seat::Campaign(_)) => Ok(()),
                Some(Seat::Idle | Seat::Term(_) | Seat::Departure(_) | Seat::Search(_)) | None => {
                    broken("an attempt fails only in a campaign", name, event)
                }
            },
            Event::CampaignEnded { name, .. } => self.campaign_ended(name, true, event),
            Event::Withdrawn { name } => self.campaign_ended(name, false, event),
            Event::Acquired { .. } => self.began(event),
            Event::Renewed {
                name, token, until, ..
            } => {
                self.term(name, *token, event)?;
                let due = self.settle(name, |due| matches!(due, Due::Renew { .. }));
                let (Some(Due::Renew { trusted }), Some(Seat::Term(term))) = (due, self.seats.get_mut(name))
                else {
                    return broken("G3 only an answer to an open request extends", name, event);
                };
                // Also if that is sooner than before: the store may have granted less this time.
                if *until != trusted {
                    return broken("G2 belief counts from before sending", name, (event, trusted));
                }
                term.until = *until;
                Ok(())
            }
            Event::RenewalFailed { name, token, .. } | Event::Doubted { name, token, .. } => {
                self.term(name, *token, event).map(drop)
            }
            Event::AskedToStepDown { name, token } => {
                self.term(name, *token, event)?;
                match (
                    self.settle(name, |due| matches!(due, Due::Ask)),
                    self.seats.get_mut(name),
                ) {
                    (Some(_), Some(Seat::Term(term))) => term.ending = true,
                    _ => return broken("a wish is told once", name, event),
                }
                Ok(())
            }
            Event::Reassured { name, token } => {
                if self.term(name, *token, event)?.ending {
                    return broken("G10 a term that is being ended is not reassured", name, event);
                }
                Ok(())
            }
            Event::Stuck { name, token, .. } => {
                if self.term(name, *token, event)?.wanted.progress_within.is_none() {
                    return broken("G22 only a term with a progress gate is stuck", name, event);
                }
                Ok(())
            }
            Event::Ended { name, token, cause } => self.ended(name, *token, cause, event),
            Event::ReleaseFailed { name, token, .. } => match self.seats.get(name) {
                Some(Seat::Departure(leaving)) if leaving.token == *token => Ok(()),
                Some(
                    Seat::Idle | Seat::Campaign(_) | Seat::Term(_) | Seat::Departure(_) | Seat::Search(_),
                )
                | None => broken("a release fails only of a term that is given back", name, event),
            },
            Event::Departed {
                name,
                token,
                departure,
            } => self.departed(name, *token, departure, event),
        }
    }

    fn began(&mut self, event: &Event) -> Result<(), Violation> {
        let Event::Acquired {
            name, grant, until, ..
        } = event
        else {
            return Ok(());
        };
        let rule = "G12 a term begins once, by an answer to an open request";
        let due = self.settle(name, |due| matches!(due, Due::Begin { .. }));
        let (
            Some(Due::Begin {
                grant: granted,
                until: trusted,
                over_at,
                attempt,
            }),
            Some(Seat::Campaign(campaign)),
        ) = (due, self.seats.get(name))
        else {
            return broken(rule, name, event);
        };
        let trusted = over_at.map_or(trusted, |over_at| trusted.min(over_at));
        if granted != *grant || trusted != *until {
            return broken("G2 belief counts from before sending", name, (event, trusted));
        }
        let term = Term {
            wanted: campaign.wanted,
            token: grant.token,
            attempt,
            until: trusted,
            over_at,
            open: None,
            ending: false,
        };
        self.seats.insert(name.clone(), Seat::Term(term));
        Ok(())
    }

    fn ended(
        &mut self,
        name: &LeaseName,
        token: FencingToken,
        cause: &Cause,
        event: &Event,
    ) -> Result<(), Violation> {
        let term = self.term(name, token, event)?;
        let (attempt, gated) = (term.attempt, term.wanted.progress_within.is_some());
        let (to_the_last, max_hold) = (term.is_held_to_the_last(), term.wanted.max_hold);
        let Some(Due::End(why)) = self.settle(name, |due| matches!(due, Due::End(_))) else {
            return broken("G8 a term ends for a reason", name, event);
        };
        let fits = match (why, cause) {
            (Ending::GivenBack | Ending::HandedOn(_), Cause::GivenBack) => true,
            (Ending::Overdue, Cause::MaxHold(max)) => to_the_last && max_hold == Some(*max),
            (Ending::Overdue, Cause::Deadline(_)) => !to_the_last,
            (Ending::Overdue, Cause::NoProgress(_)) => gated && !to_the_last,
            (Ending::Succeeded | Ending::Lost, Cause::Succeeded { .. }) | (Ending::Lost, Cause::Vanished) => {
                true
            }
            (
                Ending::Overdue | Ending::GivenBack | Ending::HandedOn(_) | Ending::Succeeded | Ending::Lost,
                _,
            ) => false,
        };
        if !fits {
            return broken("G8 a term ends for the reason that is told", name, (why, event));
        }
        let seat = match why {
            Ending::GivenBack => Seat::Departure(Leaving {
                token,
                attempt,
                open: None,
                unresolved: false,
                then: None,
            }),
            Ending::HandedOn(wanted) => Seat::Campaign(Campaign {
                heir_of: Some((token, attempt)),
                ..Campaign::new(wanted)
            }),
            Ending::Overdue | Ending::Succeeded | Ending::Lost => Seat::Idle,
        };
        self.seats.insert(name.clone(), seat);
        Ok(())
    }

    fn departed(
        &mut self,
        name: &LeaseName,
        token: FencingToken,
        departure: &Departure,
        event: &Event,
    ) -> Result<(), Violation> {
        let rule = "a token is given back once, and the store's answer is told";
        let of_it = |due: &Due| matches!(due, Due::Inherit { token: of, .. } if *of == token);
        if let Some(Due::Inherit { told, .. }) = self.settle(name, of_it) {
            if !told.is(departure) {
                return broken(rule, name, event);
            }
            match self.seats.get_mut(name) {
                Some(Seat::Campaign(campaign)) => campaign.heir_of = None,
                Some(Seat::Search(search)) => search.heir_of = None,
                Some(Seat::Idle | Seat::Term(_) | Seat::Departure(_)) | None => {
                    return broken(rule, name, event);
                }
            }
            return Ok(());
        }
        let due = self.settle(name, |due| matches!(due, Due::Depart(_)));
        let (Some(Due::Depart(told)), Some(Seat::Departure(leaving))) = (due, self.seats.get(name)) else {
            return broken(rule, name, event);
        };
        if leaving.token != token || !told.is(departure) {
            return broken(rule, name, event);
        }
        let next = after(leaving.then);
        self.seats.insert(name.clone(), next);
        Ok(())
    }

    fn campaign_ended(
        &mut self,
        name: &LeaseName,
        misconfigured: bool,
        event: &Event,
    ) -> Result<(), Violation> {
        let rule = "G13 a campaign's end is told once, when nothing is left of it";
        let due = self.settle(name, |due| matches!(due, Due::Settle { .. } | Due::GiveUp { .. }));
        let (why, orphan) = match due {
            Some(Due::Settle {
                misconfigured,
                orphan,
            }) => (misconfigured, orphan),
            Some(Due::GiveUp { misconfigured }) => (misconfigured, None),
            Some(
                Due::Begin { .. }
                | Due::Renew { .. }
                | Due::Ask
                | Due::End(_)
                | Due::Depart(_)
                | Due::Inherit { .. }
                | Due::Standby { .. },
            )
            | None => {
                return broken(rule, name, event);
            }
        };
        if why != misconfigured {
            return broken(rule, name, event);
        }
        let next = match (self.seats.get(name), orphan) {
            (Some(Seat::Search(search)), Some(orphan)) => {
                // What its own attempt took was seen to be there.
                let unresolved = (search.unresolved || search.is_doubtful) && orphan.1 != search.attempt;
                leaving(orphan, unresolved, search.then)
            }
            (Some(Seat::Search(search)), None) => after(search.then),
            (Some(Seat::Campaign(campaign)), Some(orphan)) => leaving(orphan, campaign.is_doubtful, None),
            (Some(Seat::Campaign(_)), None) => Seat::Idle,
            _ => return broken(rule, name, event),
        };
        self.seats.insert(name.clone(), next);
        Ok(())
    }

    fn term(&self, name: &LeaseName, token: FencingToken, event: &Event) -> Result<&Term, Violation> {
        match self.seats.get(name) {
            Some(Seat::Term(term)) if term.token == token => Ok(term),
            seat => broken(
                "G12 what is told of a term is told within it",
                name,
                (event, seat),
            ),
        }
    }

    /// Takes out what was due, if it was.
    fn settle(&mut self, name: &LeaseName, is: impl Fn(&Due) -> bool) -> Option<Due> {
        let at = self.due.iter().position(|(of, due)| of == name && is(due))?;
        Some(self.due.remove(at).1)
    }
}

fn leaving((token, attempt): (FencingToken, Attempt), unresolved: bool, then: Option<Wanted>) -> Seat {
    Seat::Departure(Leaving {
        token,
        attempt,
        open: None,
        unresolved,
        then,
    })
}

fn after(then: Option<Wanted>) -> Seat {
    then.map_or(Seat::Idle, |wanted| Seat::Campaign(Campaign::new(wanted)))
}
