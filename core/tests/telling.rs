//! What a user is told, when, and how often.
use crate::harness::*;
use std::time::Duration;
use tenure_core::*;

fn count(harness: &Harness, wanted: fn(&Event) -> bool) -> usize {
    harness.events.iter().filter(|event| wanted(event)).count()
}

fn is_reassured(event: &Event) -> bool {
    matches!(event, Event::Reassured { .. })
}

fn progress(harness: &mut Harness, at: Moment) -> Vec<Request> {
    harness.command(Command::Progress {
        name: job(),
        token: token(5),
        at,
    })
}

/// Lets renewals fail until the term is doubtful; hands back the renewal that is sent then.
fn doubtful() -> (Harness, Request) {
    let mut harness = Harness::leading();
    let mut request = harness.run_to_request();
    while !matches!(harness.authority(), Authority::Doubtful { .. }) {
        harness.answer(request.id, Reply::Renewed(vec![Err(unreachable())]));
        request = harness.run_to_request();
    }
    (harness, request)
}

fn extended_by(milliseconds: u64) -> Reply {
    Reply::Renewed(vec![Ok(Renewed::Extended {
        ttl: Ttl::from_millis(milliseconds).unwrap(),
        wish: Wish::Nothing,
    })])
}

#[test]
fn doubt_is_told_a_grace_before_the_end_and_not_before() {
    let mut harness = Harness::leading();
    let doubt_from = harness.until().before(timing().grace());
    harness.now = doubt_from.before(Duration::from_nanos(1));
    harness.input(Input::Tick);
    assert_eq!(count(&harness, |event| matches!(event, Event::Doubted { .. })), 0);
    harness.now = doubt_from;
    harness.input(Input::Tick);
    assert_eq!(
        harness
            .events
            .iter()
            .rfind(|event| matches!(event, Event::Doubted { .. })),
        Some(&Event::Doubted {
            name: job(),
            token: token(5),
            remaining: timing().grace(),
        })
    );
}

#[test]
fn a_renewal_without_doubt_before_it_reassures_nobody() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    assert_eq!(count(&harness, is_reassured), 0);
}

#[test]
fn a_renewal_of_a_term_that_is_being_ended_reassures_nobody() {
    let mut harness = Harness::leading();
    harness.command(Command::StepDown {
        name: job(),
        token: token(5),
    });
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    assert_eq!(count(&harness, is_reassured), 0);
    assert!(matches!(harness.authority(), Authority::Ending { .. }));
}

#[test]
fn a_renewal_that_brings_less_than_the_grace_reassures_nobody() {
    // 1 s brings nothing; 6 s bring 5.944 s, of which the grace of 5 s is left after 944 ms.
    for (granted_ms, waited_ms, reassured) in [(1_000, 0, 0), (6_000, 944, 0), (6_000, 943, 1)] {
        let (mut harness, renewal) = doubtful();
        harness.pass(Duration::from_millis(waited_ms));
        harness.answer(renewal.id, extended_by(granted_ms));
        assert_eq!(
            count(&harness, is_reassured),
            reassured,
            "{granted_ms} ms after {waited_ms} ms"
        );
        let doubtful = matches!(harness.authority(), Authority::Doubtful { .. });
        assert_eq!(doubtful, reassured == 0);
    }
}

#[test]
fn progress_of_work_that_is_not_stuck_changes_no_renewal() {
    let mut harness = Harness::gated();
    let due = harness.wake;
    harness.pass(seconds(3.0));
    let at = harness.now;
    assert_eq!(progress(&mut harness, at), vec![]);
    assert_eq!(harness.wake, due);
}

#[test]
fn progress_as_old_as_the_gate_allows_does_not_resume_renewals() {
    let mut harness = Harness::gated();
    let renewal = harness.run_to_request();
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())]));
    while count(&harness, |event| matches!(event, Event::Stuck { .. })) == 0 {
        assert!(harness.run_to_wake().is_empty());
    }
    let just_too_old = harness.now.before(seconds(15.0));
    assert_eq!(progress(&mut harness, just_too_old), vec![]);
    assert_eq!(
        count(&harness, |event| matches!(event, Event::Stuck { .. })),
        1,
        "stuck as before"
    );
    let just_in_time = just_too_old.after(Duration::from_nanos(1));
    assert!(is_renew(&only(progress(&mut harness, just_in_time))));
}

#[test]
fn a_renewal_that_was_under_way_when_renewals_stopped_does_not_begin_them_again() {
    let mut harness = Harness::gated();
    let mut renewal = harness.run_to_request();
    while count(&harness, |event| matches!(event, Event::Stuck { .. })) == 0 {
        // Each is given up, and the next is under way when the gate closes.
        renewal = harness.run_to_wake().pop().unwrap_or(renewal);
    }
    assert_eq!(
        harness.answer(renewal.id, Reply::Renewed(vec![Ok(extended())])),
        vec![]
    );
    assert_eq!(
        count(&harness, |event| matches!(event, Event::Stuck { .. })),
        1,
        "stuck as before"
    );
    // Only where renewals have stopped does progress send one at once.
    let at = harness.now;
    assert!(is_renew(&only(progress(&mut harness, at))));
}

#[test]
fn a_term_with_a_gate_that_was_open_ended_for_want_of_answers() {
    let mut harness = Harness::gated();
    while harness.leads() {
        let at = harness.now;
        let mut requests = progress(&mut harness, at);
        requests.extend(harness.run_to_wake());
        for request in requests {
            harness.answer(request.id, Reply::Renewed(vec![Err(unreachable())]));
        }
    }
    let causes: Vec<_> = harness
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Ended { cause, .. } => Some(cause.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(causes, vec![Cause::Deadline(Some(unreachable()))]);
}

#[test]
fn a_loss_names_a_successor_for_another_holder_or_another_term() {
    for record in [
        lease_of(other(), 5, seconds(20.0)),
        lease_of(me(), 6, seconds(20.0)),
    ] {
        let mut harness = Harness::leading();
        let renewal = harness.run_to_request();
        let lost = Renewed::Lost(Some(Box::new(record.clone())));
        harness.answer(renewal.id, Reply::Renewed(vec![Ok(lost)]));
        let succeeded = Cause::Succeeded {
            token: record.token,
            by: Some(record.holder),
        };
        assert!(
            matches!(harness.events.last(), Some(Event::Ended { cause, .. }) if *cause == succeeded),
            "{:?}",
            harness.events
        );
    }
}

#[test]
fn a_standby_is_told_of_each_term_of_others_once_and_of_a_twin() {
    let mut harness = Harness::new();
    let mut request = harness.campaign_once();
    let namesake = Candidate {
        id: me().id,
        ..other()
    };
    for lease in [
        lease_of(other(), 6, seconds(20.0)),
        lease_of(other(), 6, seconds(30.0)),
        lease_of(namesake, 8, seconds(30.0)),
    ] {
        harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(lease))));
        request = harness.run_to_request();
    }
    let told: Vec<_> = harness
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Standby { lease, twin } => Some((lease.token.number(), *twin)),
            _ => None,
        })
        .collect();
    assert_eq!(told, vec![(6, false), (8, true)]);
}

#[test]
fn a_standby_is_told_of_the_same_term_again_after_an_attempt_that_failed() {
    let mut harness = Harness::new();
    let mut request = harness.campaign_once();
    let held = || Reply::Acquired(Ok(Acquired::Held(lease_of(other(), 5, seconds(20.0)))));
    for reply in [held(), Reply::Acquired(Err(unreachable())), held(), held()] {
        harness.answer(request.id, reply);
        request = harness.run_to_request();
    }
    let told: Vec<_> = harness
        .events
        .iter()
        .map(|event| match event {
            Event::Standby { lease, .. } => Some(lease.token.number()),
            Event::AttemptFailed { .. } => None,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, vec![Some(5), None, Some(5)]);
}

/// A record of others under another name: a store or driver that mixes its answers up.
fn of_another_lease() -> Lease {
    Lease {
        name: LeaseName::new("another").unwrap(),
        ..lease_of(other(), 6, seconds(20.0))
    }
}

#[test]
fn a_held_lease_of_another_name_is_no_answer_to_a_campaign() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    harness.take_events();
    harness.answer(
        request.id,
        Reply::Acquired(Ok(Acquired::Held(of_another_lease()))),
    );
    let events = harness.take_events();
    let [Event::AttemptFailed { error, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Internal, Certainty::Unknown)
    );
    assert_eq!(
        error.to_string(),
        "lease \"job\": the store's answer tells of lease \"another\""
    );
}

#[test]
fn a_loss_told_with_a_lease_of_another_name_ends_nothing_before_the_deadline() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let lost = Renewed::Lost(Some(Box::new(of_another_lease())));
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(lost)]));
    assert!(harness.leads());
}

#[test]
fn a_look_answered_with_another_lease_is_repeated() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    harness.answer(request.id, Reply::Acquired(Err(unreachable())));
    let looks = harness.command(Command::Withdraw { name: job() });
    let [look] = &looks[..] else { panic!("{looks:?}") };
    harness.answer(look.id, Reply::Looked(Ok(Some(of_another_lease()))));
    assert!(!harness.engine.is_idle());
    assert!(matches!(harness.run_to_request().operation, Operation::Look(_)));
}

/// Else the lease would be left to its ttl, though nobody knows that it was given back.
#[test]
fn a_release_answered_with_another_lease_or_not_at_all_is_repeated() {
    let not_ours = Released::NotYours(Some(Box::new(of_another_lease())));
    for answers in [vec![Ok(not_ours)], vec![]] {
        let mut harness = Harness::leading();
        let release = only(harness.work_ended(5));
        harness.answer(release.id, Reply::Released(answers));
        let again = harness.run_to_request();
        assert_eq!(again.operation, release.operation);
        harness.answer(again.id, Reply::Released(vec![Ok(Released::Vacated)]));
        let departed = Event::Departed {
            name: job(),
            token: token(5),
            departure: Departure::Answered(Released::Vacated),
        };
        assert_eq!(harness.events.last(), Some(&departed));
    }
}
