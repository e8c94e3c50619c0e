//! How a term and a campaign end, and how they do not.

use crate::harness::*;
use std::time::Duration;
use tenure_core::*;

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
fn another_holder_seen_ends_the_term_now() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let theirs = lease_of(other(), 6, seconds(20.0));
    harness.answer(
        renewal.id,
        Reply::Renewed(vec![Ok(Renewed::Lost(Some(Box::new(theirs))))]),
    );
    assert!(!harness.leads());
    let by = Some(other());
    assert_eq!(causes(&harness), vec![&Cause::Succeeded { token: token(6), by }]);
}

#[test]
fn a_later_term_seen_by_the_watch_ends_the_term_now() {
    let mut harness = Harness::leading();
    harness.watch(Change::Taken, 6);
    assert!(!harness.leads());
}

#[test]
fn an_old_event_of_the_watch_ends_nothing() {
    let mut harness = Harness::leading();
    harness.watch(Change::Taken, 5);
    harness.watch(Change::Taken, 4);
    harness.watch(Change::Asked, 4);
    harness.watch(Change::Vacated, 5);
    assert!(matches!(harness.authority(), Authority::Held { .. }));
}

#[test]
fn no_answer_ends_the_term_at_the_deadline_and_not_before() {
    let mut harness = Harness::leading();
    let until = harness.until();
    while harness.now < until {
        assert!(harness.leads());
        harness.run_to_wake();
    }
    assert_eq!(harness.now, until);
    assert!(matches!(causes(&harness)[..], [Cause::Deadline(Some(_))]));
}

#[test]
fn errors_end_a_term_at_the_deadline_even_those_that_a_person_must_mend() {
    for error in [unreachable(), refused_login(), forbidden()] {
        let mut harness = Harness::leading();
        let until = harness.until();
        while harness.now < until {
            for request in harness.run_to_wake() {
                harness.answer(request.id, Reply::Renewed(vec![Err(error.clone())]));
            }
        }
        assert_eq!(causes(&harness), vec![&Cause::Deadline(Some(error))]);
    }
}

#[test]
fn errors_never_end_a_campaign() {
    for error in [unreachable(), refused_login(), unreadable()] {
        let mut harness = Harness::new();
        let mut request = harness.campaign_once();
        for _ in 0..1000 {
            harness.answer(request.id, Reply::Acquired(Err(error.clone())));
            request = harness.run_to_request();
        }
        harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
        assert!(harness.leads());
    }
}

/// Each is told with its reason: what goes on for ever must be seen.
#[test]
fn a_login_that_is_refused_is_told_and_tried_again() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    harness.answer(request.id, Reply::Acquired(Err(refused_login())));
    let told = harness.events.last();
    assert!(
        matches!(told, Some(Event::AttemptFailed { error, .. }) if *error == refused_login()),
        "{told:?}"
    );
    harness.run_to_request();
}

#[test]
fn the_back_off_of_a_failing_campaign_is_bounded_and_begins_anew_after_success() {
    let mut harness = Harness::new();
    let mut request = harness.campaign_once();
    let mut longest = seconds(0.0);
    for _ in 0..200 {
        let before = harness.now;
        harness.answer(request.id, Reply::Acquired(Err(unreachable())));
        request = harness.run_to_request();
        longest = longest.max(harness.now.since(before));
    }
    assert!(longest > seconds(5.0) && longest <= seconds(10.0), "{longest:?}");
    let theirs = lease_of(other(), 6, seconds(20.0));
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(theirs))));
    let request = harness.run_to_request();
    let before = harness.now;
    harness.answer(request.id, Reply::Acquired(Err(unreachable())));
    harness.run_to_request();
    assert!(harness.now.since(before) <= seconds(1.0));
}

#[test]
fn a_misconfiguration_ends_a_campaign_with_its_error() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    harness.answer(request.id, Reply::Acquired(Err(forbidden())));
    assert_eq!(
        harness.events,
        vec![Event::CampaignEnded {
            name: job(),
            error: forbidden()
        }]
    );
    assert!(harness.engine.is_idle());
}

#[test]
fn a_term_that_vanished_ends_now() {
    for record in [
        None,
        Some(Box::new(Lease {
            attempt: Attempt::FIRST,
            ..lease_of(me(), 5, seconds(0.0))
        })),
    ] {
        let mut harness = Harness::leading();
        let renewal = harness.run_to_request();
        harness.answer(renewal.id, Reply::Renewed(vec![Ok(Renewed::Lost(record))]));
        assert_eq!(causes(&harness), vec![&Cause::Vanished]);
    }
}

#[test]
fn one_lost_lease_never_disturbs_its_neighbours() {
    let mut harness = Harness::new();
    let names = [name("a"), name("b"), name("c")];
    for name in &names {
        let command = Command::Campaign {
            name: name.clone(),
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        };
        let request = only(harness.command(command));
        harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    }
    let renewal = harness.run_to_request();
    let outcomes = vec![Ok(extended()), Ok(Renewed::Lost(None)), Err(unreachable())];
    harness.answer(renewal.id, Reply::Renewed(outcomes));
    let held = |name| harness.engine.authority(name, harness.now) != Authority::None;
    assert_eq!(names.each_ref().map(held), [true, false, true]);
}

#[test]
fn an_answer_that_leaves_a_lease_out_tells_nothing_about_it() {
    let mut harness = Harness::leading();
    let until = harness.until();
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![]));
    assert_eq!(harness.until(), until);
}

#[test]
fn a_successor_that_holds_the_lease_no_more_is_not_named() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let over = lease_of(other(), 6, Duration::ZERO);
    let lost = Renewed::Lost(Some(Box::new(over)));
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(lost)]));
    let succeeded = Cause::Succeeded {
        token: token(6),
        by: None,
    };
    assert_eq!(causes(&harness), vec![&succeeded]);
}

/// Where nothing can be watched, and where the watch is late.
#[test]
fn a_renewal_tells_of_a_wish_to_step_down() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let asked = Renewed::Extended {
        ttl: Ttl::from_secs(30).unwrap(),
        wish: Wish::StepDown,
    };
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(asked)]));
    assert!(matches!(harness.authority(), Authority::Ending { .. }));
    let asked = |event: &Event| matches!(event, Event::AskedToStepDown { token: of, .. } if *of == token(5));
    assert!(harness.events.iter().any(asked), "{:?}", harness.events);
}

#[test]
fn doubt_that_has_begun_does_not_begin_later() {
    let since = |harness: &Harness| match harness.authority() {
        Authority::Doubtful { since, .. } | Authority::Ending { since, .. } => since,
        authority => panic!("{authority:?}"),
    };
    let step_down = |harness: &mut Harness| {
        let (name, token) = (job(), token(5));
        harness.command(Command::StepDown { name, token });
    };
    let mut harness = Harness::leading();
    step_down(&mut harness);
    let begun_at = since(&harness);
    harness.pass(seconds(1.0));
    step_down(&mut harness);
    assert_eq!(since(&harness), begun_at);

    // What ends it is another reason, which has begun later.
    let doubt_from = |harness: &Harness| harness.engine.belief(&job()).unwrap().doubt_from;
    let mut harness = Harness::leading();
    harness.now = harness.until().before(timing().grace() / 2);
    let begun_at = since(&harness);
    step_down(&mut harness);
    assert_eq!((doubt_from(&harness), since(&harness)), (begun_at, harness.now));
}

#[test]
fn a_wish_to_step_down_brings_doubt_at_once_and_renewals_go_on_until_the_work_has_ended() {
    let mut harness = Harness::leading();
    harness.watch(Change::Asked, 5);
    assert!(matches!(harness.authority(), Authority::Ending { .. }));
    let renewal = harness.run_to_request();
    let asked = Renewed::Extended {
        ttl: Ttl::from_secs(30).unwrap(),
        wish: Wish::StepDown,
    };
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(asked)]));
    assert!(
        matches!(harness.authority(), Authority::Ending { .. }),
        "a renewal does not end this doubt"
    );
    let asked = harness
        .events
        .iter()
        .filter(|event| matches!(event, Event::AskedToStepDown { .. }))
        .count();
    assert_eq!(asked, 1, "the wish is reported once");
    assert!(is_release(&only(harness.work_ended(5))));
}
