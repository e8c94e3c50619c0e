//! What a driver knows of one lease: who waits for it here, and who holds it.

use super::message::{NotWon, Obstacle, Queueing, Waiting, Won};
use super::permit::Permit;
use super::row::Row;
use crate::held::HeldTerm;
use crate::sync::oneshot;
use crate::term::{Phase, SharedTerm};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Cause, Departure, FencingToken, Grant, Moment, WatchSource};

#[derive(Default)]
pub(super) struct Place {
    /// `None` where there is nobody: of a hundred thousand locks, few have anybody who waits for anything.
    crowd: Option<Box<Crowd>>,
    pub(super) term: Option<Arc<SharedTerm>>,
    /// Kept until the term is over.
    permit: Option<Permit>,
    row: Row,
}

/// Those at a place who wait for something.
#[derive(Default)]
struct Crowd {
    /// For the lease, in the order in which they came; the engine campaigns for the first.
    waiting: VecDeque<Waiting>,
    /// What the last attempt for them has met.
    obstacle: Option<Box<Obstacle>>,
    /// From when on attempts may be made for them: before, somebody here held it, or let others have it
    /// first.
    attempted_from: Moment,
    /// To hear what became of a term that they have ended.
    departing: Vec<Departing>,
    /// How many looks at whose the lease is have failed since the last term here.
    failed_looks: u32,
}

struct Departing {
    token: FencingToken,
    answer: oneshot::Sender<Option<Departure>>,
}

/// Whether a term that was won was handed to anybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// Somebody has it.
    Yes,
    /// Whoever campaigned was gone.
    No,
}

impl Place {
    /// Lets `waiting` wait, unless it is not to. Whether it is the first, so that the engine must campaign.
    #[must_use]
    pub(super) fn admit(&mut self, waiting: Waiting, now: Moment) -> bool {
        let is_first = !self.has_waiting() && self.term.is_none();
        let is_admitted = match waiting.queueing {
            Queueing::Line => true,
            Queueing::Follow => !is_first,
            Queueing::Alone | Queueing::OneLook => is_first,
        };
        if is_admitted {
            let crowd = self.crowd.get_or_insert_default();
            crowd.waiting.push_back(waiting);
            if is_first {
                crowd.attempted_from = now;
            }
        } else {
            waiting.refuse();
        }
        is_admitted && is_first
    }

    /// Forgets who waits no longer. Whether anybody is left.
    pub(super) fn forget_those_who_left(&mut self) -> bool {
        if let Some(crowd) = &mut self.crowd {
            crowd.waiting.retain(|waiting| !waiting.won.is_closed());
            if self.term.is_none() && crowd.waiting.is_empty() {
                // Whoever was to go on with it has left.
                self.row.end();
            }
            if self.term.is_none() && !self.row.goes_on() {
                // Who followed somebody has nobody left to follow.
                let follows = |first: &Waiting| first.queueing == Queueing::Follow;
                while crowd.waiting.front().is_some_and(follows) {
                    if let Some(first) = crowd.waiting.pop_front() {
                        first.refuse();
                    }
                }
            }
        }
        self.thin_out();
        self.has_waiting()
    }

    /// Forgets all who wait for the lease. Whether there was anybody.
    pub(super) fn forget_all_who_wait(&mut self) -> bool {
        let anybody = self.has_waiting();
        if let Some(crowd) = &mut self.crowd {
            crowd.waiting.clear();
        }
        self.thin_out();
        anybody
    }

    /// How long the first who waits may hold it.
    pub(super) fn max_hold(&self) -> Option<Duration> {
        self.crowd.as_ref()?.waiting.front()?.max_hold
    }

    /// How long the first who waits may hold it without progress.
    pub(super) fn progress_within(&self) -> Option<Duration> {
        self.crowd.as_ref()?.waiting.front()?.progress_within
    }

    fn has_waiting(&self) -> bool {
        self.crowd.as_ref().is_some_and(|crowd| !crowd.waiting.is_empty())
    }

    fn next_waiting(&mut self) -> Option<Waiting> {
        self.crowd.as_mut()?.waiting.pop_front()
    }

    /// Gives the room of a crowd back when nobody is in it.
    fn thin_out(&mut self) {
        let nobody = |crowd: &Crowd| crowd.waiting.is_empty() && crowd.departing.is_empty();
        if self.crowd.as_deref().is_some_and(nobody) {
            self.crowd = None;
        }
    }

    /// Hands the term to the first who still waits.
    pub(super) fn hand_over(&mut self, grant: &Grant, term: &Arc<SharedTerm>) -> Seen {
        self.term = Some(term.clone());
        self.row
            .begin(grant.predecessor.as_ref().map(|before| before.token));
        let mut unseen: Option<Won> = None;
        let mut seen = Seen::No;
        while let Some(waiting) = self.next_waiting() {
            let won = unseen.take().unwrap_or_else(|| Won {
                held: HeldTerm::new(waiting.name, term.clone(), waiting.driver),
                grant: grant.clone(),
            });
            match waiting.won.send(Ok(won)) {
                Ok(()) => {
                    self.permit = waiting.permit;
                    seen = Seen::Yes;
                    break;
                }
                // It left a moment ago: nobody has seen the term, so the next may have it.
                Err(unread) => unseen = unread.ok(),
            }
        }
        if let Some(crowd) = &mut self.crowd {
            crowd.failed_looks = 0;
            crowd.obstacle = None;
        }
        self.thin_out();
        seen
    }

    /// Whether the term goes over to the next who waits here, without being released in between; counts it.
    pub(super) fn hands_on(&mut self, token: FencingToken, now: Moment) -> bool {
        let Some(term) = self.term.as_ref().filter(|term| term.token() == token) else {
            // It is over already, and the row is of the term that there is.
            return false;
        };
        // Somebody who asked for its end is not to find it taken again from within.
        if term.phase() != Phase::Running || !self.forget_those_who_left() {
            self.row.end();
            return false;
        }
        let hands_on = self.row.has_room(now) || self.has_follower();
        match hands_on {
            true => self.row.hand_on(now),
            false => self.row.end_for_others(token, now),
        }
        hands_on
    }

    /// This term was released. Until when whoever waits here lets others go first.
    pub(super) fn stand_back(
        &mut self,
        token: FencingToken,
        now: Moment,
        watch: WatchSource,
    ) -> Option<Moment> {
        let until = self.row.stand_back(token, now, watch);
        if let (Some(crowd), Some(until)) = (&mut self.crowd, until) {
            crowd.attempted_from = until;
        }
        until
    }

    pub(super) fn stands_back(&self, now: Moment) -> bool {
        self.row.stands_back(now)
    }

    /// Whether the first who waits was called to follow: whoever called it counts.
    fn has_follower(&self) -> bool {
        let first = self.crowd.as_ref().and_then(|crowd| crowd.waiting.front());
        first.is_some_and(|first| first.queueing == Queueing::Follow)
    }

    /// Whether the first who waits came for one look.
    pub(super) fn is_looked_at(&self) -> bool {
        let first = self.crowd.as_ref().and_then(|crowd| crowd.waiting.front());
        first.is_some_and(|first| first.queueing == Queueing::OneLook)
    }

    /// Tells the first one, if it came for one look.
    pub(super) fn end_look(&mut self, why: impl FnOnce() -> NotWon) {
        if self.is_looked_at()
            && let Some(waiting) = self.next_waiting()
        {
            waiting.disappoint(why());
        }
        self.thin_out();
    }

    /// An attempt for those who wait has failed.
    pub(super) fn meet(&mut self, obstacle: Obstacle) {
        if let Some(crowd) = &mut self.crowd {
            crowd.obstacle = Some(Box::new(obstacle));
        }
    }

    /// What the last attempt for those who wait has met.
    pub(super) fn obstacle(&self) -> Option<&Obstacle> {
        self.crowd.as_ref()?.obstacle.as_deref()
    }

    /// From when on attempts may have been made for those who wait.
    pub(super) fn attempted_from(&self) -> Option<Moment> {
        Some(self.crowd.as_ref()?.attempted_from)
    }

    /// One more look at whose the lease is has failed. Answers how many had before it.
    pub(super) fn note_failed_look(&mut self) -> u32 {
        self.crowd.as_mut().map_or(0, |crowd| {
            let before = crowd.failed_looks;
            crowd.failed_looks = before.saturating_add(1);
            before
        })
    }

    /// Ends the waiting of all.
    pub(super) fn refuse_all(&mut self, why: impl Fn() -> NotWon) {
        while let Some(waiting) = self.next_waiting() {
            waiting.disappoint(why());
        }
        self.thin_out();
    }

    /// The term is over. If it was lost, whoever waits here does not take it from its holder.
    pub(super) fn forget_term(&mut self, cause: &Cause, now: Moment) {
        self.permit = None;
        self.term = None;
        if let Some(crowd) = &mut self.crowd {
            crowd.attempted_from = now;
        }
        if *cause != Cause::GivenBack {
            self.row.end();
        }
    }

    pub(super) fn await_departure(
        &mut self,
        token: FencingToken,
        answer: oneshot::Sender<Option<Departure>>,
    ) {
        let crowd = self.crowd.get_or_insert_default();
        crowd.departing.push(Departing { token, answer });
    }

    /// `None`: the term was over before.
    pub(super) fn answer_departures(&mut self, token: FencingToken, departure: Option<&Departure>) {
        let Some(crowd) = &mut self.crowd else { return };
        let is_of_it = |departing: &mut Departing| departing.token == token;
        for Departing { answer, .. } in crowd.departing.extract_if(.., is_of_it) {
            let _ = answer.send(departure.cloned());
        }
        self.thin_out();
    }

    /// Whether the engine must campaign for it.
    pub(super) fn is_waited_for(&self) -> bool {
        self.has_waiting() && self.term.is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.crowd.is_none() && self.term.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::{Moment, Place, Queueing, SharedTerm, Waiting};
    use crate::driver::DriverHandle;
    use crate::sync::{mpsc, oneshot};
    use std::sync::Arc;
    use tenure_core::{Belief, Cause, FencingToken, LeaseName};

    fn token(number: u64) -> FencingToken {
        FencingToken::new(number).expect("a token")
    }

    /// Where a term with this token is held.
    fn held(number: u64) -> Place {
        let now = Moment::ZERO;
        Place {
            term: Some(Arc::new(SharedTerm::new(Belief {
                token: token(number),
                doubt_from: now,
                ending_from: None,
                until: now,
            }))),
            ..Place::default()
        }
    }

    /// The end of a term may be told when the next has begun: it is not that one's.
    #[test]
    fn end_of_an_earlier_term_ends_no_row_of_a_later_one() {
        let now = Moment::ZERO;
        let mut place = held(2);
        place.row.hand_on(now);
        assert!(!place.hands_on(token(1), now));
        assert!(place.row.goes_on());
        assert!(!place.hands_on(token(2), now) && !place.row.goes_on());
    }
    /// Whoever comes later would follow nobody.
    #[test]
    fn a_row_whose_heirs_have_all_left_goes_on_with_nobody() {
        let now = Moment::ZERO;
        let (sender, _messages) = mpsc::unbounded_channel();
        let driver = DriverHandle::new(sender, None);
        let waiting = |queueing| {
            let (won, answer) = oneshot::channel();
            let waiting = Waiting {
                name: LeaseName::new("a").expect("a name"),
                won,
                driver: driver.clone(),
                queueing,
                max_hold: None,
                progress_within: None,
                permit: None,
            };
            (waiting, answer)
        };
        let mut place = held(1);
        let (heir, heir_waits) = waiting(Queueing::Follow);
        assert!(!place.admit(heir, now));
        // Whoever had it waits for the release, so that the place stays.
        let (departed, _told) = oneshot::channel();
        place.await_departure(token(1), departed);
        assert!(place.hands_on(token(1), now));
        place.forget_term(&Cause::GivenBack, now);
        drop(heir_waits);
        assert!(!place.forget_those_who_left());

        let (first, first_waits) = waiting(Queueing::Line);
        let (follower, _follower_waits) = waiting(Queueing::Follow);
        assert!(place.admit(first, now));
        assert!(!place.admit(follower, now));
        drop(first_waits);
        assert!(!place.forget_those_who_left(), "one campaigns that has no turn");
    }
}
