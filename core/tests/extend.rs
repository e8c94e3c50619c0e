//! A term that is extended before its next beat, because somebody has just begun to count on it.

use crate::harness::*;
use tenure_core::*;

fn extend(harness: &mut Harness, number: u64) -> Vec<Request> {
    harness.command(Command::Extend {
        name: job(),
        token: token(number),
    })
}

fn until(harness: &Harness) -> Moment {
    harness.engine.belief(&job()).expect("a term").until
}

#[test]
fn extension_on_demand_is_sent_at_once_and_counts_from_then() {
    let mut harness = Harness::leading();
    let before = until(&harness);
    harness.pass(seconds(2.0));
    let request = only(extend(&mut harness, 5));
    assert!(matches!(&request.operation, Operation::Renew(renewals) if renewals[0].token == token(5)));
    assert!(extend(&mut harness, 5).is_empty(), "one is under way");
    harness.answer(request.id, Reply::Renewed(vec![Ok(extended())]));
    assert_eq!(until(&harness), before.after(seconds(2.0)));
}

#[test]
fn extensions_on_demand_are_an_eighth_of_the_interval_apart() {
    let mut harness = Harness::leading();
    harness.pass(seconds(1.2));
    assert!(extend(&mut harness, 5).is_empty(), "it was granted a moment ago");
    harness.pass(seconds(0.1));
    let request = only(extend(&mut harness, 5));
    harness.answer(request.id, Reply::Renewed(vec![Ok(extended())]));
    assert!(extend(&mut harness, 5).is_empty(), "it was extended a moment ago");
}

#[test]
fn a_store_that_fails_is_asked_no_oftener_on_demand() {
    let mut harness = Harness::leading();
    harness.pass(seconds(2.0));
    let request = only(extend(&mut harness, 5));
    harness.answer(request.id, Reply::Renewed(vec![Err(unreachable())]));
    assert!(extend(&mut harness, 5).is_empty(), "the next try has its time");
}

#[test]
fn a_store_that_has_answered_again_is_asked_on_demand_again() {
    let mut harness = Harness::leading();
    harness.pass(seconds(2.0));
    let request = only(extend(&mut harness, 5));
    harness.answer(request.id, Reply::Renewed(vec![Err(unreachable())]));
    let again = harness.run_to_request();
    harness.answer(again.id, Reply::Renewed(vec![Ok(extended())]));
    harness.pass(seconds(2.0));
    assert!(is_renew(&only(extend(&mut harness, 5))));
}

#[test]
fn extension_of_another_term_is_without_effect() {
    let mut harness = Harness::leading();
    harness.pass(seconds(2.0));
    assert!(extend(&mut harness, 4).is_empty());
    assert!(extend(&mut harness, 6).is_empty());
}

#[test]
fn what_is_past_its_longest_hold_is_not_extended_on_demand() {
    let mut harness = Harness::new();
    let request = only(harness.command(Command::Campaign {
        name: job(),
        note: Note::default(),
        progress_within: None,
        max_hold: Some(seconds(10.0)),
    }));
    harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    harness.pass(seconds(2.0));
    assert!(extend(&mut harness, 5).is_empty());
}
