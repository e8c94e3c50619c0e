//! When authority ends: counted from before sending, on the granted ttl, and never later for a late reply.

use crate::harness::*;
use std::time::Duration;
use tenure_core::*;

/// 30 s less twice 500 ppm of it less 50 ms for a step of the store's clock.
const TRUST: Duration = Duration::from_millis(30_000 - 30 - 50);

#[test]
fn the_term_counts_from_before_the_request_was_sent() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    let sent_at = harness.now;
    harness.pass(seconds(2.0));
    harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    assert_eq!(harness.until(), sent_at.after(TRUST));
}

#[test]
fn a_renewal_counts_from_before_it_was_sent() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let sent_at = harness.now;
    harness.pass(seconds(2.5));
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    assert_eq!(harness.until(), sent_at.after(TRUST));
}

#[test]
fn a_renewal_that_grants_less_ends_the_term_sooner() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let sent_at = harness.now;
    let ttl = Ttl::from_millis(5_000).unwrap();
    let wish = Wish::Nothing;
    harness.answer(
        renewal.id,
        Reply::Renewed(vec![Ok(Renewed::Extended { ttl, wish })]),
    );
    assert_eq!(
        harness.until(),
        sent_at.after(Duration::from_millis(5_000 - 5 - 50))
    );
}

#[test]
fn a_deadline_that_somebody_has_seen_pass_ends_the_term_whatever_was_renewed() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    harness.take_events();
    let seen = |number| Command::DeadlineSeen {
        name: job(),
        token: token(number),
    };
    assert_eq!(harness.command(seen(4)), [], "another term's deadline");
    assert_eq!(harness.take_events(), []);
    assert_eq!(
        harness.command(seen(5)),
        [],
        "nothing is released: the work has not ended"
    );
    let ended = Event::Ended {
        name: job(),
        token: token(5),
        cause: Cause::Deadline(None),
    };
    assert_eq!(harness.take_events(), [ended]);
    assert_eq!(harness.engine.authority(&job(), harness.now), Authority::None);
}

#[test]
fn a_renewal_that_is_over_when_its_answer_arrives_ends_the_term_in_the_same_step() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    harness.pass(seconds(2.0));
    let ttl = Ttl::from_millis(2_000).unwrap();
    let wish = Wish::Nothing;
    harness.take_events();
    harness.answer(
        renewal.id,
        Reply::Renewed(vec![Ok(Renewed::Extended { ttl, wish })]),
    );
    let ends = |event: &Event| {
        matches!(
            event,
            Event::Ended {
                cause: Cause::Deadline(None),
                ..
            }
        )
    };
    let events = harness.take_events();
    assert!(events.iter().any(ends), "{events:?}");
    assert!(harness.engine.belief(&job()).is_none());
}

#[test]
fn the_granted_ttl_counts_not_the_asked_one() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    let sent_at = harness.now;
    harness.answer(request.id, Reply::Acquired(Ok(grant_for(5, 12))));
    assert_eq!(
        harness.until(),
        sent_at.after(Duration::from_millis(12_000 - 12 - 50))
    );
    // And the renewals follow the granted ttl.
    let renewal = harness.run_to_request();
    assert_eq!(harness.now, sent_at.after(seconds(4.0)));
    assert!(is_renew(&renewal));
}

#[test]
fn authority_is_gone_at_the_deadline_without_any_reply_or_step() {
    let harness = Harness::leading();
    let until = harness.until();
    let just_before = until.before(Duration::from_nanos(1));
    assert!(matches!(
        harness.engine.authority(&job(), just_before),
        Authority::Doubtful { .. }
    ));
    assert_eq!(harness.engine.authority(&job(), until), Authority::None);
}

#[test]
fn a_reply_after_the_deadline_never_extends() {
    let mut harness = Harness::leading();
    let until = harness.until();
    let renewal = harness.run_to_request();
    harness.now = until;
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    assert!(!harness.leads());
    assert!(harness.events.iter().any(|event| matches!(
        event,
        Event::Ended {
            cause: Cause::Deadline(_),
            ..
        }
    )));
}

#[test]
fn a_reply_to_a_request_that_was_given_up_never_extends() {
    let mut harness = Harness::leading();
    let until = harness.until();
    let renewal = harness.run_to_request();
    harness.now = renewal.give_up_at;
    harness.input(Input::Tick);
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    assert_eq!(harness.until(), until, "only a reply in time extends");
}

#[test]
fn a_late_grant_is_not_believed_and_asked_again_with_the_same_attempt() {
    let mut harness = Harness::new();
    let first = harness.campaign_once();
    harness.pass(timing().trust(Ttl::from_secs(30).unwrap()));
    let again = only(harness.answer(first.id, Reply::Acquired(Ok(grant(5)))));
    assert!(!harness.leads());
    assert_eq!(attempt_of(&again), attempt_of(&first));
}

#[test]
fn a_second_answer_to_one_request_is_dropped() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    let until = harness.until();
    harness.pass(seconds(1.0));
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(Renewed::Lost(None))]));
    assert_eq!(harness.until(), until);
}

#[test]
fn no_request_outlasts_the_term_that_it_is_to_extend() {
    let mut harness = Harness::leading();
    let until = harness.until();
    let mut last = None;
    while harness.leads() {
        for request in harness.run_to_wake() {
            assert!(request.give_up_at <= until, "{request:?} outlasts {until:?}");
            assert!(request.give_up_at <= harness.now.after(timing().request_timeout()));
            last = Some(request.give_up_at);
            harness.answer(request.id, Reply::Renewed(vec![Err(unreachable())]));
        }
    }
    assert_eq!(last, Some(until), "the last renewal was cut to what was left");
}

#[test]
fn doubt_begins_a_grace_before_the_end_and_a_renewal_ends_it() {
    let mut harness = Harness::leading();
    let until = harness.until();
    let mut request = harness.run_to_request();
    while !matches!(harness.authority(), Authority::Doubtful { .. }) {
        let failed = Reply::Renewed(vec![Err(unreachable())]);
        harness.answer(request.id, failed);
        request = harness.run_to_request();
    }
    assert_eq!(
        harness.engine.authority(&job(), until.before(timing().grace())),
        harness.authority()
    );
    let doubts = |events: &[Event]| {
        events
            .iter()
            .filter(|e| matches!(e, Event::Doubted { .. }))
            .count()
    };
    assert_eq!(doubts(&harness.events), 1, "doubt is reported once");
    harness.answer(request.id, Reply::Renewed(vec![Ok(extended())]));
    assert!(matches!(harness.authority(), Authority::Held { .. }));
    assert!(
        harness
            .events
            .iter()
            .any(|event| matches!(event, Event::Reassured { .. }))
    );
}

#[test]
fn a_term_without_any_grace_wakes_the_engine_for_its_deadline() {
    let options = TimingOptions {
        grace: Some(seconds(0.0)),
        ..TimingOptions::new(seconds(30.0))
    };
    let mut harness = Harness::with(options.check().unwrap(), 1000);
    let request = harness.campaign_once();
    harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    let until = harness.until();
    // The last renewal under way ends with the term: both are awaited at one moment, and the deadline is the
    // reason.
    while harness.wake.is_some_and(|wake| wake.at < until) {
        harness.run_to_wake();
    }
    let why = WakeReason::Deadline;
    assert_eq!(harness.wake, Some(Wake { at: until, why }));
    harness.run_to_wake();
    let doubted = |event: &Event| matches!(event, Event::Doubted { .. });
    assert!(!harness.events.iter().any(doubted), "{:?}", harness.events);
}
