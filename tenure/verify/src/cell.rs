//! The deadline cell, exhaustively: loom tries every order of its reads and writes, and every value that a
//! read may return, up to what the few steps of each model allow.

#[path = "../../src/deadline.rs"]
mod deadline;

use crate::sync::{AtomicU64, Ordering};
use deadline::{Deadline, Extension};
use loom::sync::Arc;
use loom::thread;
use std::sync::atomic::{AtomicU64 as Count, Ordering as CountOrdering};
use tenure_core::{Authority, Belief, FencingToken, Moment};

/// A model: its name, and one execution of it.
pub const MODELS: &[(&str, fn())] = &[
    ("once_over_it_stays_over", once_over_it_stays_over),
    ("one_sees_what_another_saw_end", one_sees_what_another_saw_end),
    ("a_refused_renewal_was_too_late", a_refused_renewal_was_too_late),
    (
        "ended_by_its_handle_it_stays_ended",
        ended_by_its_handle_it_stays_ended,
    ),
    (
        "once_being_ended_it_is_never_held",
        once_being_ended_it_is_never_held,
    ),
    (
        "nobody_believes_past_what_was_published",
        nobody_believes_past_what_was_published,
    ),
];

/// Explores a model to its end, and counts the executions. Panics where something does not hold.
pub fn exhaust(model: fn()) -> u64 {
    let count = std::sync::Arc::new(Count::new(0));
    let counted = count.clone();
    loom::model::Builder::new().check(move || {
        counted.fetch_add(1, CountOrdering::SeqCst);
        model();
    });
    count.load(CountOrdering::SeqCst)
}

const BEGIN: u64 = 10;
const DOUBT: u64 = 20;
const FIRST_END: u64 = 30;
const SECOND_DOUBT: u64 = 40;
const SECOND_END: u64 = 50;
/// A moment at which the first renewal has run out and the second has not.
const BETWEEN: u64 = 35;

fn moment(at: u64) -> Moment {
    Moment::from_nanos(at)
}

fn token() -> FencingToken {
    FencingToken::new(7).expect("seven is a token")
}

fn belief(doubt_from: u64, until: u64) -> Belief {
    Belief {
        token: token(),
        doubt_from: moment(doubt_from),
        ending_from: None,
        until: moment(until),
    }
}

fn cell() -> Arc<Deadline> {
    Arc::new(Deadline::new(belief(DOUBT, FIRST_END)))
}

/// A clock that another thread moves on; it never falls.
#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(BEGIN)))
    }

    fn now(&self) -> Moment {
        moment(self.0.load(Ordering::SeqCst))
    }

    fn pass(&self, to: u64) {
        self.0.store(to, Ordering::SeqCst);
    }
}

fn look(cell: &Deadline, clock: &Clock) -> Authority {
    let authority = cell.authority(|| clock.now());
    if let Some(until) = authority.until() {
        assert_eq!(authority.token(), Some(token()));
        assert!(
            until == moment(FIRST_END) || until == moment(SECOND_END),
            "a deadline that nobody published"
        );
    }
    authority
}

/// The driver's part: an answer came in time, and is published whenever the driver gets to it.
fn renew(cell: &Deadline) -> Extension {
    cell.extend(&belief(SECOND_DOUBT, SECOND_END))
}

fn once_over_it_stays_over() {
    let (cell, clock) = (cell(), Clock::new());
    let driver = thread::spawn({
        let (cell, clock) = (cell.clone(), clock.clone());
        move || {
            clock.pass(BETWEEN);
            renew(&cell)
        }
    });
    let (first, second) = (look(&cell, &clock), look(&cell, &clock));
    assert!(
        first != Authority::None || second == Authority::None,
        "over, and then {second:?}"
    );
    let published = driver.join().expect("the driver does not panic");
    let last = look(&cell, &clock);
    assert!(
        second != Authority::None || last == Authority::None,
        "over, and then {last:?}"
    );
    assert_eq!(
        last != Authority::None,
        published == Extension::Published,
        "the driver believes otherwise"
    );
}

fn one_sees_what_another_saw_end() {
    let (cell, clock) = (cell(), Clock::new());
    clock.pass(BETWEEN);
    let reader = thread::spawn({
        let (cell, clock) = (cell.clone(), clock.clone());
        move || look(&cell, &clock)
    });
    let driver = thread::spawn({
        let cell = cell.clone();
        move || renew(&cell)
    });
    let theirs = reader.join().expect("the reader does not panic");
    let ours = look(&cell, &clock);
    assert!(
        theirs != Authority::None || ours == Authority::None,
        "another saw it over, and here it is {ours:?}"
    );
    driver.join().expect("the driver does not panic");
}

fn a_refused_renewal_was_too_late() {
    let (cell, clock) = (cell(), Clock::new());
    let reader = thread::spawn({
        let (cell, clock) = (cell.clone(), clock.clone());
        move || look(&cell, &clock)
    });
    let passer = thread::spawn({
        let clock = clock.clone();
        move || clock.pass(BETWEEN)
    });
    if renew(&cell) == Extension::TooLate {
        assert!(clock.now() >= moment(FIRST_END), "refused before the deadline");
        assert_eq!(look(&cell, &clock), Authority::None);
        assert_eq!(cell.until(), moment(FIRST_END), "it ended then");
    }
    reader.join().expect("the reader does not panic");
    passer.join().expect("the clock does not panic");
}

fn ended_by_its_handle_it_stays_ended() {
    let (cell, clock) = (cell(), Clock::new());
    let driver = thread::spawn({
        let cell = cell.clone();
        move || {
            let first = renew(&cell);
            (first, renew(&cell))
        }
    });
    cell.end();
    assert_eq!(
        look(&cell, &clock),
        Authority::None,
        "believed in after its handle ended it"
    );
    let (first, second) = driver.join().expect("the driver does not panic");
    assert!(
        first != Extension::TooLate || second == Extension::TooLate,
        "refused, and then taken"
    );
    assert_eq!(renew(&cell), Extension::TooLate);
    assert_eq!(look(&cell, &clock), Authority::None);
}

fn once_being_ended_it_is_never_held() {
    let (cell, clock) = (cell(), Clock::new());
    let driver = thread::spawn({
        let cell = cell.clone();
        move || renew(&cell)
    });
    cell.begin_to_end(clock.now());
    for _ in 0..2 {
        let authority = look(&cell, &clock);
        assert!(matches!(authority, Authority::Ending { .. }), "{authority:?}");
    }
    driver.join().expect("the driver does not panic");
}

fn nobody_believes_past_what_was_published() {
    let (cell, clock) = (cell(), Clock::new());
    let published = Arc::new(AtomicU64::new(FIRST_END));
    let driver = thread::spawn({
        let (cell, published) = (cell.clone(), published.clone());
        move || {
            published.store(SECOND_END, Ordering::SeqCst);
            renew(&cell)
        }
    });
    let passer = thread::spawn({
        let clock = clock.clone();
        move || clock.pass(SECOND_END)
    });
    let before = clock.now();
    if let Some(until) = look(&cell, &clock).until() {
        assert!(before < until, "believed in at {before:?}, past {until:?}");
        assert!(
            until.as_nanos() <= published.load(Ordering::SeqCst),
            "believed in before it was published"
        );
    }
    driver.join().expect("the driver does not panic");
    passer.join().expect("the clock does not panic");
    assert_eq!(look(&cell, &clock), Authority::None);
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_order_of_reads_and_writes_of_the_deadline_breaks_a_promise() {
        for (name, model) in super::MODELS {
            assert!(super::exhaust(*model) > 1, "{name} has but one order");
        }
    }
}
