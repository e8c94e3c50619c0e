//! The deadline of a term by one thread. Apart from it, as `tenure/verify` compiles that with a clock and
//! cells of its own, which are of no use outside its searches.

use crate::deadline::{Deadline, Extension};
use tenure_core::{Authority, Belief, FencingToken, Moment};

fn belief(until: u64) -> Belief {
    Belief {
        token: FencingToken::new(7).expect("a token"),
        doubt_from: Moment::from_millis(until / 2),
        ending_from: None,
        until: Moment::from_millis(until),
    }
}

fn at(deadline: &Deadline, millis: u64) -> Authority {
    deadline.authority(|| Moment::from_millis(millis))
}

#[test]
fn belief_ends_at_the_deadline_though_nobody_ends_it() {
    let deadline = Deadline::new(belief(100));
    assert!(matches!(at(&deadline, 0), Authority::Held { .. }));
    assert!(matches!(at(&deadline, 99), Authority::Doubtful { .. }));
    assert_eq!(at(&deadline, 100), Authority::None);
}

/// Also by a clock that another thread has read a moment earlier.
#[test]
fn a_renewal_brings_back_nothing_that_somebody_has_seen_to_be_over() {
    let deadline = Deadline::new(belief(100));
    assert_eq!(deadline.extend(&belief(200)), Extension::Published);
    assert!(matches!(at(&deadline, 150), Authority::Doubtful { .. }));
    assert_eq!(at(&deadline, 200), Authority::None);
    assert_eq!(deadline.extend(&belief(300)), Extension::TooLate);
    for millis in [199, 250] {
        assert_eq!(at(&deadline, millis), Authority::None);
    }
    assert!(!deadline.has_been_ended());
}

#[test]
fn a_renewal_does_not_take_back_that_a_term_is_being_ended() {
    let deadline = Deadline::new(belief(100));
    deadline.begin_to_end(Moment::from_millis(10));
    assert_eq!(deadline.extend(&belief(200)), Extension::Published);
    assert!(matches!(at(&deadline, 20), Authority::Ending { .. }));
    deadline.end();
    assert_eq!(at(&deadline, 20), Authority::None);
    assert!(deadline.has_been_ended());
}
