//! A release of which nobody knows whether it was made.

use crate::harness::*;
use tenure_core::*;

/// The next leader is woken by the very release, and has the lease when it is asked for again.
#[test]
fn a_release_whose_answer_was_lost_is_not_told_as_anothers_term() {
    for waits_for_the_answer in [true, false] {
        let mut harness = Harness::leading();
        let release = only(harness.work_ended(5));
        let again = if waits_for_the_answer {
            let again = harness.run_to_request();
            harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)]));
            again
        } else {
            harness.answer(release.id, Reply::Released(vec![Err(unreachable())]));
            harness.run_to_request()
        };
        let theirs = Box::new(lease_of(other(), 6, seconds(30.0)));
        harness.answer(
            again.id,
            Reply::Released(vec![Ok(Released::NotYours(Some(theirs)))]),
        );
        let told = harness.events.last();
        let is_unconfirmed = |departure: &Departure| match departure {
            Departure::Unconfirmed { error, .. } => {
                error.certainty == Certainty::Unknown && error.message.contains("job")
            }
            Departure::Answered(_) => false,
        };
        assert!(
            matches!(told, Some(Event::Departed { departure, .. }) if is_unconfirmed(departure)),
            "{told:?}"
        );
    }
}

#[test]
fn a_release_that_was_surely_not_made_leaves_no_doubt_of_what_the_next_one_finds() {
    let mut harness = Harness::leading();
    let release = only(harness.work_ended(5));
    let busy = StoreError {
        certainty: Certainty::NotApplied,
        ..unreachable()
    };
    harness.answer(release.id, Reply::Released(vec![Err(busy)]));
    let again = harness.run_to_request();
    harness.answer(again.id, Reply::Released(vec![Ok(Released::NotYours(None))]));
    assert!(matches!(
        harness.events.last(),
        Some(Event::Departed {
            departure: Departure::Answered(Released::NotYours(None)),
            ..
        })
    ));
}
