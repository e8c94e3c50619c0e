//! The longest hold: a term that is renewed as it should be is over all the same.

use crate::harness::*;
use std::time::Duration;
use tenure_core::*;

/// A harness that leads `job` with token 5 for at most `max_hold`.
fn leading_for(max_hold: Duration) -> Harness {
    let mut harness = Harness::new();
    let request = only(harness.command(campaign("job", Some(max_hold))));
    harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    harness
}

fn campaign(lease: &str, max_hold: Option<Duration>) -> Command {
    Command::Campaign {
        name: name(lease),
        note: Note::default(),
        progress_within: None,
        max_hold,
    }
}

/// Lets every renewal succeed until `end`; answers when renewals of `job` were sent.
fn renew_until(harness: &mut Harness, end: Moment) -> Vec<Moment> {
    let mut renewed = Vec::new();
    while harness.wake.is_some_and(|wake| wake.at <= end) {
        for request in harness.run_to_wake() {
            let Operation::Renew(renewals) = &request.operation else {
                continue;
            };
            renewed.extend(
                renewals
                    .iter()
                    .filter(|renew| renew.name == job())
                    .map(|_| harness.now),
            );
            let all = renewals.iter().map(|_| Ok(extended())).collect();
            harness.answer(request.id, Reply::Renewed(all));
        }
    }
    harness.now = end;
    harness.input(Input::Tick);
    renewed
}

fn cause(event: &Event) -> Option<&Cause> {
    match event {
        Event::Ended { cause, .. } => Some(cause),
        _ => None,
    }
}

fn causes(harness: &Harness) -> Vec<&Cause> {
    harness.events.iter().filter_map(cause).collect()
}

#[test]
fn the_longest_hold_counts_from_when_the_term_began() {
    let mut harness = Harness::new();
    let request = only(harness.command(campaign("job", Some(seconds(5.0)))));
    harness.pass(seconds(2.0));
    harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    assert_eq!(harness.until(), harness.now.after(seconds(5.0)));
}

#[test]
fn a_term_is_over_at_its_longest_hold_however_well_it_is_renewed() {
    let max_hold = seconds(95.0);
    let mut harness = leading_for(max_hold);
    let over_at = harness.now.after(max_hold);
    renew_until(&mut harness, over_at.before(Duration::from_nanos(1)));
    assert!(harness.leads());
    assert_eq!(harness.until(), over_at);
    harness.now = over_at;
    assert!(!harness.leads(), "without any step");
    assert_eq!(
        harness.input(Input::Tick),
        vec![],
        "the work may go on: nothing is released"
    );
    assert_eq!(causes(&harness), vec![&Cause::MaxHold(max_hold)]);
    assert!(harness.engine.is_idle());
}

#[test]
fn a_renewal_that_cannot_extend_the_term_is_not_sent() {
    let mut harness = leading_for(seconds(95.0));
    let began = harness.now;
    let renewed = renew_until(&mut harness, began.after(seconds(100.0)));
    // The one at 70 s lasts until the end; each later one would only keep others waiting after it.
    let at: Vec<Duration> = renewed.iter().map(|at| at.since(began)).collect();
    assert_eq!(
        at,
        (1..=7)
            .map(|beat| seconds(10.0 * f64::from(beat)))
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_hold_shorter_than_the_ttl_ends_without_any_renewal() {
    let mut harness = leading_for(seconds(8.0));
    let began = harness.now;
    let renewed = renew_until(&mut harness, began.after(seconds(8.0)));
    assert_eq!(renewed, vec![]);
    assert_eq!(causes(&harness), vec![&Cause::MaxHold(seconds(8.0))]);
    let doubted =
        |event: &Event| matches!(event, Event::Doubted { remaining, .. } if *remaining == seconds(5.0));
    assert!(harness.events.iter().any(doubted), "{:?}", harness.events);
}

#[test]
fn a_neighbour_keeps_no_term_beyond_its_longest_hold_and_is_kept() {
    let mut harness = Harness::new();
    for (lease, max_hold) in [("a", None), ("job", Some(seconds(50.0))), ("z", None)] {
        let request = only(harness.command(campaign(lease, max_hold)));
        harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    }
    let began = harness.now;
    renew_until(&mut harness, began.after(seconds(300.0)));
    assert_eq!(causes(&harness), vec![&Cause::MaxHold(seconds(50.0))]);
    for lease in ["a", "z"] {
        let authority = harness.engine.authority(&name(lease), harness.now);
        assert!(
            matches!(authority, Authority::Held { .. }),
            "{lease}: {authority:?}"
        );
    }
}

#[test]
fn a_term_that_is_not_renewed_ends_at_its_deadline_before_its_longest_hold() {
    let mut harness = leading_for(seconds(95.0));
    while harness.leads() {
        for request in harness.run_to_wake() {
            harness.answer(request.id, Reply::Renewed(vec![Err(unreachable())]));
        }
    }
    assert_eq!(causes(&harness), vec![&Cause::Deadline(Some(unreachable()))]);
}

#[test]
fn a_store_that_grants_less_near_the_end_is_asked_again() {
    let mut harness = leading_for(seconds(35.0));
    let over_at = harness.now.after(seconds(35.0));
    let less = || Renewed::Extended {
        ttl: Ttl::from_secs(12).unwrap(),
        wish: Wish::Nothing,
    };
    while harness.now < over_at {
        for request in harness.run_to_wake() {
            harness.answer(request.id, Reply::Renewed(vec![Ok(less())]));
        }
    }
    assert_eq!(harness.now, over_at);
    assert_eq!(causes(&harness), vec![&Cause::MaxHold(seconds(35.0))]);
}

#[test]
fn a_hold_of_nothing_begins_and_ends() {
    let mut harness = leading_for(Duration::ZERO);
    assert!(harness.run_to_wake().is_empty());
    assert_eq!(causes(&harness), vec![&Cause::MaxHold(Duration::ZERO)]);
}

#[test]
fn a_campaign_that_waits_for_a_release_keeps_its_longest_hold() {
    let mut harness = Harness::leading();
    let release = only(harness.work_ended(5));
    harness.command(campaign("job", Some(seconds(7.0))));
    let request = only(harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)])));
    harness.answer(request.id, Reply::Acquired(Ok(grant(6))));
    assert_eq!(harness.until(), harness.now.after(seconds(7.0)));
}
