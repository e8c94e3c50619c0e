//! What the store's watch says: a hint that may lag and repeat, so that it only ever makes the engine look
//! sooner or stop sooner.

use super::seat::{Hint, Seat};
use super::{Actions, Cause, Engine, Event};
use crate::{Change, FencingToken, LeaseName, Moment, WatchEvent};
use std::time::Duration;

impl Engine {
    pub(super) fn hint(&mut self, now: Moment, event: WatchEvent, actions: &mut Actions) {
        match event {
            WatchEvent::Gap => {
                let names: Vec<LeaseName> = self.seats.names().cloned().collect();
                for name in names {
                    let pause = self.dice.between(Duration::ZERO, self.timing.spread);
                    self.look_soon(&name, Hint::Anything, now.after(pause));
                }
            }
            WatchEvent::Changed {
                name,
                change: Change::Vacated,
                token,
            } => {
                let pause = self.dice.between(Duration::ZERO, self.timing.wake_spread());
                let hint = token.map_or(Hint::Anything, Hint::Vacated);
                self.look_soon(&name, hint, now.after(pause));
            }
            WatchEvent::Changed {
                name,
                change: Change::Taken,
                token,
            } => self.taken(&name, token, actions),
            WatchEvent::Changed {
                name,
                change: Change::Asked,
                token,
            } => {
                let Some(token) = token else { return };
                if let Some(term) = self.term_mut(&name, token)
                    && term.ending_since.is_none()
                {
                    term.ending_since = Some(now);
                    actions.events.push(Event::AskedToStepDown { name, token });
                }
            }
        }
    }

    fn look_soon(&mut self, name: &LeaseName, hint: Hint, at: Moment) {
        if let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) {
            if campaign.request.is_some() {
                // The answer may have been made before what the hint tells. An older hint that comes again
                // does not hide it.
                campaign.hint = campaign.hint.max(Some(hint));
            } else if campaign.failures == 0 {
                campaign.next_at = campaign.next_at.min(at);
            }
        }
    }

    /// Tokens only rise: a term with a greater one began after ours, so ours is over.
    fn taken(&mut self, name: &LeaseName, token: Option<FencingToken>, actions: &mut Actions) {
        let Some(seen) = token else { return };
        if let Some(Seat::Term(term)) = self.seats.get(name)
            && seen > term.token
        {
            self.end(
                name,
                Cause::Succeeded {
                    token: seen,
                    by: None,
                },
                actions,
            );
        }
    }
}
