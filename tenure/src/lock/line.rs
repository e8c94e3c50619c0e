//! The line of those in one process who wait for one lock in order: each has a number, and keeps it until it
//! has the lock.
//!
//! One of them has the process's turn in the [queue](super::fair), and calls the next along with it. Nobody
//! of the process enters the queue anew while one of those still waits: else two turns of it would be one
//! after another, with no place between them for another process.

use super::LockError;
use super::watched::Watched;
use crate::clock;
use crate::driver::{HAND_ONS, HAND_ONS_FOR};
use crate::sync::{oneshot, select, sleep};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tenure_core::{LeaseName, Moment, StoreError};

/// Lines that are kept although nobody may stand in them any more, in a process that has few.
const LINES_KEPT: usize = 16;

/// The lines in this process, one for each queue that anybody here is in.
#[derive(Default)]
pub(super) struct Lines(Mutex<Named>);

#[derive(Default)]
struct Named {
    lines: BTreeMap<LeaseName, Arc<Line>>,
    /// With as many, those that nobody stands in are looked for again.
    look_at: usize,
    #[cfg(test)]
    looked_at: usize,
}

/// Those of this process who wait for one lock.
#[derive(Default)]
struct Line {
    numbers: Mutex<Numbers>,
    /// The place before that of this process, which often is the same from turn to turn: kept while one turn
    /// follows another.
    watched: Mutex<Option<Watched>>,
}

#[derive(Default)]
struct Numbers {
    next: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Call>>,
    rounds: u64,
    goes: Option<Going>,
    /// Why the last look at who is before this process in the queue has failed.
    trouble: Option<StoreError>,
}

/// The [`Round`] that goes on, and when one of those in it was last seen to be polled.
struct Going {
    round: u64,
    progress_at: Moment,
}

/// A place in a line; it ends with it.
pub(super) struct Number {
    line: Arc<Line>,
    number: u64,
}

/// What somebody in a line may do. Whoever was called and is gone lets the next be called.
pub(super) enum Call {
    /// Enter the queue, for all.
    First(Arc<Round>),
    /// Follow whoever has the turn.
    Along(Along),
}

/// One turn of this process: kept by each who was called in it until it has the lock or gives up. Where none
/// of those is polled any more, the next does not wait for its end.
pub(super) struct Round {
    line: Arc<Line>,
    number: u64,
    /// When the first of those in it had the lock.
    first_at: OnceLock<Moment>,
    calls: Mutex<Calls>,
}

/// Those who may be called along yet.
#[derive(Default)]
struct Calls {
    left: u32,
    /// One was called, and has not come to the driver yet.
    under_way: bool,
}

/// Has the next be called when it is dropped: one after another, so that they come to the driver in their
/// order.
pub(super) struct Along {
    round: Arc<Round>,
    went: bool,
}

impl Lines {
    /// The last place in a line.
    pub(super) fn join(&self, name: &LeaseName) -> Number {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        named.let_empty_ones_go();
        let line = named.lines.entry(name.clone()).or_default().clone();
        let number = line.numbers().take();
        Number { line, number }
    }

    /// Why the process that stands in this line does not know who is before it in the queue, if it does not.
    pub(super) fn trouble(&self, name: &LeaseName) -> Option<StoreError> {
        let named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        named.lines.get(name)?.numbers().trouble.clone()
    }
}

impl Named {
    /// Lets those go that nobody stands in any more. Only where there are twice as many as the last time:
    /// whoever joins looks at two or three, on average, however many there are.
    fn let_empty_ones_go(&mut self) {
        if self.lines.len() < self.look_at {
            return;
        }
        #[cfg(test)]
        {
            self.looked_at += self.lines.len();
        }
        self.lines.retain(|_, line| Arc::strong_count(line) > 1);
        self.look_at = (2 * self.lines.len()).max(LINES_KEPT);
    }
}

impl Line {
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, Option<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the next round, if none goes.
    fn begin(self: &Arc<Self>, now: Moment) {
        let mut numbers = self.numbers();
        if numbers.goes.is_none()
            && let Some((_, first)) = numbers.waiting.pop_first()
        {
            numbers.rounds += 1;
            let number = numbers.rounds;
            numbers.goes = Some(Going {
                round: number,
                progress_at: now,
            });
            drop(numbers);
            let round = Round {
                line: self.clone(),
                number,
                first_at: OnceLock::new(),
                calls: Mutex::default(),
            };
            drop(first.send(Call::First(Arc::new(round))));
        }
    }

    /// Begins the next round, if none goes of which anybody was polled within `patience`. How long to wait
    /// for the one that goes.
    fn go_on(self: &Arc<Self>, now: Moment, patience: Duration) -> Duration {
        let left = |going: &Going| patience.saturating_sub(now.since(going.progress_at));
        self.numbers().goes.take_if(|going| left(going).is_zero());
        self.begin(now);
        self.numbers().goes.as_ref().map_or(patience, left)
    }
}

impl Numbers {
    fn take(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Number {
    /// Waits until it is called, for a round without progress no longer than `patience`. The round in which
    /// it was in vain ends for it when it stands in line again: not before, so that nobody with a higher
    /// number is called in the next one.
    ///
    /// # Errors
    /// [`LockError::Stopped`], which is not to be: nobody else takes it out of the line.
    pub(super) async fn called(
        &self,
        name: &LeaseName,
        in_vain: Option<Arc<Round>>,
        patience: Duration,
    ) -> Result<Call, LockError> {
        let (caller, mut call) = oneshot::channel();
        self.line.numbers().waiting.insert(self.number, caller);
        drop(in_vain);
        loop {
            let left = self.line.go_on(clock::now(), patience);
            select! {
                biased;
                call = &mut call => return call.map_err(|_| LockError::Stopped(name.clone())),
                () = sleep(left) => {}
            }
        }
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let left = self.line.numbers().waiting.remove(&self.number);
        drop(left);
    }
}

impl Round {
    /// Calls others along, before the first of this round has the lock: as many as it is handed on to in a
    /// row, but for the one that the first calls when it [has it](Self::taken).
    pub(super) fn call_along(self: &Arc<Self>) {
        self.call(HAND_ONS - 1);
    }

    /// One of those in it has the lock: calls one more, as long as the lock is handed on more often.
    pub(super) fn taken(self: &Arc<Self>) {
        let now = clock::now();
        let first_at = *self.first_at.get_or_init(|| now);
        if now.since(first_at) < HAND_ONS_FOR {
            self.call(1);
        }
    }

    /// Lets so many more go along. Where nobody stands in line any more, none of them does.
    fn call(self: &Arc<Self>, more: u32) {
        let next = {
            let mut calls = self.calls();
            calls.left += more;
            if calls.under_way || calls.left == 0 {
                return;
            }
            let Some((_, next)) = self.line.numbers().waiting.pop_first() else {
                calls.left = 0;
                return;
            };
            calls.left -= 1;
            calls.under_way = true;
            next
        };
        let round = self.clone();
        // One who is gone meanwhile does not go.
        drop(next.send(Call::Along(Along { round, went: false })));
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watch that the turn before has left.
    pub(super) fn take_watched(&self) -> Option<Watched> {
        self.line.watched().take()
    }

    /// Leaves the watch to the next turn, if one follows this.
    pub(super) fn keep_watched(&self, watched: Option<Watched>) {
        *self.line.watched() = watched;
    }

    /// What came of a look at who is before this process in the queue. Answers whether it is another fault
    /// than that of the last look, or one after none.
    pub(super) fn looked(&self, trouble: Option<StoreError>) -> bool {
        let mut numbers = self.line.numbers();
        let fault = trouble.as_ref().map(|error| error.fault);
        let last = std::mem::replace(&mut numbers.trouble, trouble);
        fault.is_some() && fault != last.map(|error| error.fault)
    }

    /// One of those in it was polled.
    pub(super) fn progress(&self) {
        let now = clock::now();
        if let Some(going) = &mut self.line.numbers().goes
            && going.round == self.number
        {
            going.progress_at = going.progress_at.max(now);
        }
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        let is_this = |going: &mut Going| going.round == self.number;
        self.line.numbers().goes.take_if(is_this);
        self.line.begin(clock::now());
        if self.line.numbers().goes.is_none() {
            drop(self.take_watched());
        }
    }
}

impl Along {
    /// It goes along, and is where those who are called after it are to be behind it. The round is kept until
    /// it has the lock.
    pub(super) fn go(mut self) -> Arc<Round> {
        self.went = true;
        self.round.clone()
    }
}

impl Drop for Along {
    fn drop(&mut self) {
        self.round.calls().under_way = false;
        self.round.call(u32::from(!self.went));
    }
}

#[cfg(test)]
mod tests {
    use super::{Going, LINES_KEPT, Lines};
    use std::time::Duration;
    use tenure_core::{LeaseName, Moment};

    const NAMES: usize = 10_000;

    fn name(number: usize) -> LeaseName {
        LeaseName::new(format!("lock/{number}")).expect("a name")
    }

    #[test]
    fn whoever_joins_one_of_many_lines_does_not_look_at_them_all() {
        let lines = Lines::default();
        let numbers: Vec<_> = (0..NAMES).map(|number| lines.join(&name(number))).collect();
        let named = lines.0.lock().expect("nobody panicked");
        assert_eq!(named.lines.len(), numbers.len());
        assert!(named.looked_at < 4 * NAMES, "{} steps", named.looked_at);
    }

    #[test]
    fn lines_that_nobody_stands_in_any_more_do_not_pile_up() {
        let lines = Lines::default();
        for number in 0..NAMES {
            drop(lines.join(&name(number)));
        }
        let named = lines.0.lock().expect("nobody panicked");
        assert!(named.lines.len() <= LINES_KEPT, "{}", named.lines.len());
        assert!(named.looked_at < 4 * NAMES, "{} steps", named.looked_at);
    }

    #[test]
    fn a_turn_without_progress_is_waited_for_until_one_ttl_after_its_last_however_late_somebody_came() {
        let seconds = Duration::from_secs;
        let (progress_at, patience) = (Moment::ZERO.after(seconds(100)), seconds(10));
        let lines = Lines::default();
        let line = lines.join(&name(0)).line.clone();
        line.numbers().goes = Some(Going {
            round: 0,
            progress_at,
        });
        let left_after = |time| line.go_on(progress_at.after(time), patience);
        assert_eq!(
            (left_after(seconds(0)), left_after(seconds(9))),
            (patience, seconds(1))
        );
        assert!(line.numbers().goes.is_some());
        assert_eq!(left_after(patience), patience);
        assert!(line.numbers().goes.is_none(), "the next may go");
    }
}
