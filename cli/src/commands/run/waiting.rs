//! Waiting for a term, as long as there is patience for it.

use super::opening::Waiting;
use super::order;
use super::signs;
use super::story::{Obstacle, Story};
use super::turn::Turn;
use crate::arguments::{Patience, term_above};
use crate::exit::{Code, Failure, of_signal};
use crate::manager;
use crate::output::short;
use serde_json::json;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;
use tenure::contract::{Fault, Lease, Occupancy};
use tenure::{Election, Event, Leadership, LeaseName, LockManager, Priority, SharedStore, StoreError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// How many request time-outs the first attempt may take beyond the time that there is for waiting.
pub(super) const ATTEMPT_REQUESTS: u32 = 2;

/// What waiting came to.
pub(super) enum Waited {
    Won(Leadership),
    /// This is the exit code.
    Ended(u8),
}

impl Turn<'_> {
    pub(super) async fn wait(&mut self) -> Result<Waited, Failure> {
        manager::status("stands by");
        let before = self.before.take().unwrap_or_else(|| {
            let (since, mut story) = (Instant::now(), Story::default());
            story.opened();
            Waiting { since, story }
        });
        let (began, mut story) = (before.since, before.story);
        let (election, queue, priority) = (self.election, self.queue, self.priority);
        let store = self.store.clone();
        let observed = self.looks_for_life.then_some(&store);
        let mut campaign = pin!(campaign(election, queue, &store, priority.is_some(), observed));
        let mut look = pin!(what_stands_before(election, &store, priority));
        let timing = election.timing();
        let mut deadline = match self.patience {
            Patience::Limited(wait) => began.checked_add(wait),
            Patience::Endless | Patience::OneAttempt => None,
        };
        // The time is over. What it was waiting for may have been seen long ago, and the store be dead by
        // now: it looks. And the first attempt is made however short the time was.
        let (mut is_overdue, mut has_looked) = (false, false);
        let mut last_seen = None;
        let mut has_events = true;
        let mut of_queue = queue.map(LockManager::events);
        loop {
            if let (Some(obstacle), true) = (story.obstacle(), is_overdue) {
                return self.give_up(obstacle, Some(began.elapsed()));
            }
            tokio::select! {
                biased;
                outcome = &mut campaign => {
                    let Some(leadership) = outcome? else {
                        return self.give_up(&Obstacle::Queue, None);
                    };
                    // One that came at the same moment lets no term begin.
                    if let Some(signal) = self.signals.end() {
                        if let Some(kept) = self.give_back(leadership, None).await {
                            kept.say(self.voice);
                        }
                        return Ok(Waited::Ended(of_signal(signal.as_raw())));
                    }
                    story.won(&leadership, began.elapsed(), self.voice);
                    return Ok(Waited::Won(leadership));
                }
                event = self.events.recv(), if has_events => match event {
                    Ok(Event::Standby { lease, .. }) if self.waits_for_itself(&lease) => {
                        return Err(for_itself(&lease));
                    }
                    Ok(event) => {
                        let obstacle = story.take_in(event, self.patience, self.voice);
                        if let (Some(obstacle), Patience::OneAttempt) = (obstacle, self.patience) {
                            return self.give_up(obstacle, None);
                        }
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => has_events = false,
                },
                event = heard(&mut of_queue) => story.take_in_of_queue(event, self.voice),
                () = tokio::time::sleep_until(deadline.unwrap_or(began)), if deadline.is_some() => {
                    let fails = matches!(story.obstacle(), Some(Obstacle::Store(_)));
                    if !fails && !is_overdue {
                        is_overdue = true;
                        last_seen = story.take_what_may_be_old();
                        deadline = Some(Instant::now() + timing.request_timeout() * ATTEMPT_REQUESTS);
                        continue;
                    }
                    let untold = match (has_looked, story.unread()) {
                        // A store that was asked who is ahead has answered: somebody has come in between.
                        (true, _) => Obstacle::Queue,
                        (false, Some(unread)) => Obstacle::Store(unread.clone()),
                        (false, None) => Obstacle::Store(match last_seen {
                            Some(_) => silent_by_now(election.name()),
                            None => silent(election.name()),
                        }),
                    };
                    return self.give_up(story.obstacle().unwrap_or(&untold), Some(began.elapsed()));
                }
                found = &mut look, if is_overdue && !has_looked => {
                    has_looked = true;
                    if let Some(obstacle) = found.or(last_seen.take()) {
                        return self.give_up(&obstacle, Some(began.elapsed()));
                    }
                }
                signal = self.signals.end_of_waiting() => {
                    return Ok(Waited::Ended(of_signal(signal.as_raw())));
                }
            }
        }
    }

    /// Whether it is the work of the very term that it would wait for the end of.
    fn waits_for_itself(&self, lease: &Lease) -> bool {
        self.patience != Patience::OneAttempt && is_of_term_above(lease)
    }

    /// The end of the patience.
    fn give_up(&self, obstacle: &Obstacle, waited: Option<Duration>) -> Result<Waited, Failure> {
        let (suffix, name) = (waited.map_or(String::new(), after), self.election.name());
        let message = match obstacle {
            Obstacle::Store(error) => return Err(gave_up(error.clone(), name, waited)),
            // Silence: so who does not wait ends on all hosts but one.
            Obstacle::Held(_) | Obstacle::Queue if waited.is_none() => {
                return Ok(Waited::Ended(self.conflict_code));
            }
            Obstacle::Queue => format!("lease \"{name}\": its turn in the queue has not come{suffix}"),
            Obstacle::Held(lease) => format!(
                "lease \"{name}\": held by {}, token {}{suffix}",
                lease.holder, lease.token
            ),
        };
        let code = self.conflict_code;
        if code == 0 {
            // Whoever has asked for that does not call it a failure.
            self.voice
                .say("gave_up", &message, json!({"lease": name.as_str()}));
            return Ok(Waited::Ended(code));
        }
        Err(Failure { code, message })
    }
}

/// Whether it is held by the term whose work this is.
fn is_of_term_above(lease: &Lease) -> bool {
    let is_its = |(name, token): (String, u64)| lease.name.as_str() == name && lease.token.number() == token;
    lease.occupancy() == Occupancy::Held && term_above().is_some_and(is_its)
}

/// Campaigns in whatever order there is. `None`: others wait, or one leads, and it is not to wait with them.
async fn campaign(
    election: &Election,
    queue: Option<&LockManager>,
    store: &SharedStore,
    is_ordered: bool,
    observed: Option<&SharedStore>,
) -> Result<Option<Leadership>, Failure> {
    let name = election.name();
    if let Some(store) = observed
        && signs::holder_lives(store, name).await?
    {
        return Ok(None);
    }
    if let Some(queue) = queue {
        // Whoever stands in a queue behind another is told by nobody who leads.
        if let Ok(Some(lease)) = store.get(name).await
            && is_of_term_above(&lease)
        {
            return Err(for_itself(&lease));
        }
        return order::campaign(queue, election).await.map(Some);
    }
    if is_ordered && order::others_wait(store, name, observed).await? {
        return Ok(None);
    }
    let won = election.campaign().await;
    won.map(Some)
        .map_err(|error| Failure::from(error).of_lease(name.as_str()))
}

/// What stands between this candidate and the lease at this moment, as the store tells.
async fn what_stands_before(
    election: &Election,
    store: &SharedStore,
    priority: Option<Priority>,
) -> Option<Obstacle> {
    // Nothing else tells of whom it waits for in a queue.
    if let Some(priority) = priority {
        match order::is_behind(store, election, priority).await {
            Ok(true) => return Some(Obstacle::Queue),
            Ok(false) => {}
            Err(error) => return Some(Obstacle::Store(error)),
        }
    }
    match store.get(election.name()).await {
        Ok(Some(lease)) if lease.occupancy() == Occupancy::Held => {
            let is_another = lease.holder != *election.candidate();
            is_another.then(|| Obstacle::Held(Box::new(lease)))
        }
        Ok(_) => None,
        Err(error) => Some(Obstacle::Store(error)),
    }
}

/// The next event, if anybody tells any.
async fn heard(events: &mut Option<broadcast::Receiver<Event>>) -> Event {
    while let Some(receiver) = events {
        match receiver.recv().await {
            Ok(event) => return event,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => *events = None,
        }
    }
    pending().await
}

/// What has answered nothing, neither an error.
pub(super) fn silent(name: &LeaseName) -> StoreError {
    let message = format!("lease \"{name}\": the store has not answered yet; is it reachable?");
    StoreError::not_applied(Fault::TimedOut, message)
}

/// What has answered, and does no longer.
fn silent_by_now(name: &LeaseName) -> StoreError {
    let message = format!("lease \"{name}\": the store does not answer any more; is it reachable?");
    StoreError::not_applied(Fault::TimedOut, message)
}

fn for_itself(lease: &Lease) -> Failure {
    let (name, token) = (&lease.name, lease.token);
    let message = format!(
        "lease \"{name}\": it is held by the term that this runs under (TENURE_NAME, TENURE_TOKEN {token}): it would never be \
         free; name another"
    );
    Failure::new(Code::Usage, message)
}

/// The end of the patience with a store, after this time.
pub(super) fn gave_up(error: StoreError, name: &LeaseName, waited: Option<Duration>) -> Failure {
    let failure = Failure::from(error).of_lease(name.as_str());
    Failure {
        message: failure.message + &waited.map_or(String::new(), after),
        ..failure
    }
}

fn after(waited: Duration) -> String {
    format!("; gave up after {}", short(waited))
}
