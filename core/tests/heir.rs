//! A lease that is handed on within a process: taken by the next attempt, not released.

use crate::harness::*;
use tenure_core::*;

fn hand_on(harness: &mut Harness, number: u64) -> Vec<Request> {
    harness.command(Command::HandOn {
        name: job(),
        token: token(number),
        note: Note::default(),
        progress_within: None,
        max_hold: None,
    })
}

/// A harness that has handed its term 5 on, and the request by which it is taken.
fn handing_on() -> (Harness, Request) {
    let mut harness = Harness::leading();
    harness.pass(seconds(1.0));
    harness.events.clear();
    let request = only(hand_on(&mut harness, 5));
    (harness, request)
}

/// What was told of the release of term 5, in this order.
fn departures(harness: &Harness) -> Vec<Departure> {
    let told = harness.events.iter().filter_map(|event| match event {
        Event::Departed {
            token: of, departure, ..
        } if *of == token(5) => Some(departure.clone()),
        _ => None,
    });
    told.collect()
}

/// The record as it is while nobody has taken it from term 5.
fn still_ours() -> Lease {
    lease_of(me(), 5, seconds(20.0))
}

#[test]
fn one_request_takes_it_with_a_later_attempt_and_a_token_of_its_own() {
    let (mut harness, request) = handing_on();
    assert_eq!(harness.authority(), Authority::None, "nobody has it meanwhile");
    assert_eq!(attempt_of(&request), Attempt::FIRST.next());
    assert!(departures(&harness).is_empty(), "nothing is known yet");
    assert!(
        harness
            .answer(request.id, Reply::Acquired(Ok(grant(6))))
            .is_empty()
    );
    assert_eq!(departures(&harness), vec![Departure::Answered(Released::Vacated)]);
    assert!(matches!(harness.authority(), Authority::Held { token: now, .. } if now == token(6)));
}

#[test]
fn a_term_that_was_another_s_by_then_is_told_so() {
    let (mut harness, request) = handing_on();
    let theirs = lease_of(other(), 7, seconds(10.0));
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Held(theirs.clone()))));
    let found = Departure::Answered(Released::NotYours(Some(Box::new(theirs))));
    assert_eq!(departures(&harness), vec![found]);
}

/// A grant of token 9 whose predecessor is a term of another with this token.
fn grant_after(before: u64) -> Acquired {
    let Acquired::Granted(grant) = grant(9) else {
        unreachable!("it is a grant")
    };
    let predecessor = Predecessor {
        candidate: other().id,
        token: token(before),
        end: End::Released,
        vacant_for: seconds(0.1),
    };
    Acquired::Granted(Grant {
        predecessor: Some(predecessor),
        ..grant
    })
}

#[test]
fn a_term_that_another_had_taken_and_left_by_then_is_not_told_as_released() {
    let (mut harness, request) = handing_on();
    harness.answer(request.id, Reply::Acquired(Ok(grant_after(7))));
    let found = Departure::Answered(Released::NotYours(None));
    assert_eq!(departures(&harness), vec![found]);
    assert!(matches!(harness.authority(), Authority::Held { token: now, .. } if now == token(9)));
}

#[test]
fn a_term_that_a_lost_try_may_have_taken_before_another_came_is_told_neither_as_lost_nor_as_released() {
    let theirs = lease_of(other(), 7, seconds(10.0));
    let unheard = || Err(unreachable());
    for (found, first) in [
        (grant_after(7), unheard()),
        (Acquired::Held(theirs.clone()), unheard()),
        // Also after one that was overtaken: whose tokens it has met is not known.
        (grant_after(7), Ok(Acquired::Superseded)),
        (Acquired::Held(theirs), Ok(Acquired::Superseded)),
    ] {
        let (mut harness, request) = handing_on();
        harness.answer(request.id, Reply::Acquired(first));
        let request = harness.run_to_request();
        harness.answer(request.id, Reply::Acquired(Ok(found.clone())));
        let told = departures(&harness);
        assert!(
            matches!(told.as_slice(), [Departure::Unconfirmed { .. }]),
            "{found:?}: {told:?}"
        );
    }
}

#[test]
fn a_term_that_was_handed_on_unheard_to_one_who_left_is_not_told_as_anothers() {
    let (mut harness, request) = handing_on();
    harness.answer(request.id, Reply::Acquired(Err(unreachable())));
    let look = only(harness.command(Command::Withdraw { name: job() }));
    let theirs = lease_of(other(), 7, seconds(10.0));
    harness.answer(look.id, Reply::Looked(Ok(Some(theirs))));
    let told = departures(&harness);
    assert!(
        matches!(told.as_slice(), [Departure::Unconfirmed { .. }]),
        "{told:?}"
    );
}

#[test]
fn a_term_that_comes_right_before_its_heirs_is_released() {
    let (mut harness, request) = handing_on();
    harness.answer(request.id, Reply::Acquired(Ok(grant_after(5))));
    assert_eq!(departures(&harness), vec![Departure::Answered(Released::Vacated)]);
}

#[test]
fn whoever_was_to_have_it_may_leave_and_the_term_is_released_after_all() {
    let (mut harness, request) = handing_on();
    harness.answer(request.id, Reply::Acquired(Err(unreachable())));
    let look = only(harness.command(Command::Withdraw { name: job() }));
    assert!(matches!(look.operation, Operation::Look(_)), "{look:?}");
    let release = only(harness.answer(look.id, Reply::Looked(Ok(Some(still_ours())))));
    let Operation::Release(releases) = &release.operation else {
        panic!("{release:?}");
    };
    assert_eq!(
        (releases[0].token, releases[0].attempt),
        (token(5), Attempt::FIRST)
    );
    assert!(departures(&harness).is_empty(), "not released yet");
    harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)]));
    assert_eq!(departures(&harness), vec![Departure::Answered(Released::Vacated)]);
    assert!(harness.engine.is_idle());
}

#[test]
fn what_the_withdrawn_attempt_took_is_found_and_released() {
    let (mut harness, request) = handing_on();
    harness.answer(request.id, Reply::Acquired(Err(unreachable())));
    let look = only(harness.command(Command::Withdraw { name: job() }));
    let taken = Lease {
        attempt: attempt_of(&request),
        ..lease_of(me(), 6, seconds(29.0))
    };
    let release = only(harness.answer(look.id, Reply::Looked(Ok(Some(taken)))));
    assert!(matches!(&release.operation, Operation::Release(releases) if releases[0].token == token(6)));
    assert_eq!(departures(&harness), vec![Departure::Answered(Released::Vacated)]);
}

#[test]
fn what_the_attempt_takes_after_it_was_withdrawn_is_released_as_its_own() {
    let (mut harness, request) = handing_on();
    assert_eq!(harness.command(Command::Withdraw { name: job() }), vec![]);
    let release = only(harness.answer(request.id, Reply::Acquired(Ok(grant(6)))));
    let Operation::Release(releases) = &release.operation else {
        panic!("{release:?}");
    };
    assert_eq!(
        (releases[0].token, releases[0].attempt),
        (token(6), attempt_of(&request))
    );
    assert_eq!(departures(&harness), vec![Departure::Answered(Released::Vacated)]);
}

#[test]
fn an_attempt_that_changed_nothing_after_it_was_withdrawn_leaves_the_term_to_be_released() {
    let (mut harness, request) = handing_on();
    assert_eq!(harness.command(Command::Withdraw { name: job() }), vec![]);
    let refused = StoreError::not_applied(Fault::Busy, "lease \"job\": busy");
    let release = only(harness.answer(request.id, Reply::Acquired(Err(refused))));
    assert!(matches!(&release.operation, Operation::Release(releases) if releases[0].token == token(5)));
    assert!(departures(&harness).is_empty(), "not released yet");
}

#[test]
fn an_attempt_that_surely_failed_leaves_the_term_to_be_released() {
    let (mut harness, request) = handing_on();
    let refused = StoreError::not_applied(Fault::Busy, "lease \"job\": busy");
    harness.answer(request.id, Reply::Acquired(Err(refused)));
    assert!(departures(&harness).is_empty(), "it is tried again");
    let release = only(harness.command(Command::Withdraw { name: job() }));
    assert!(matches!(&release.operation, Operation::Release(releases) if releases[0].token == token(5)));
}

#[test]
fn a_misconfiguration_ends_the_campaign_and_releases_the_term() {
    let (mut harness, request) = handing_on();
    let release = only(harness.answer(request.id, Reply::Acquired(Err(forbidden()))));
    assert!(matches!(&release.operation, Operation::Release(releases) if releases[0].token == token(5)));
    assert!(
        harness
            .events
            .iter()
            .any(|event| matches!(event, Event::CampaignEnded { .. })),
        "{:?}",
        harness.events
    );
}

#[test]
fn a_store_that_is_silent_until_the_term_has_expired_leaves_its_release_unconfirmed() {
    let (mut harness, mut request) = handing_on();
    for _try in 0..100 {
        harness.answer(request.id, Reply::Acquired(Err(unreachable())));
        if !departures(&harness).is_empty() {
            break;
        }
        request = harness.run_to_request();
    }
    let told = departures(&harness);
    let [Departure::Unconfirmed { error, remaining }] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!(*error, unreachable());
    assert!(*remaining <= timing().retry_every(), "{remaining:?}");
    let request = harness.run_to_request();
    harness.answer(request.id, Reply::Acquired(Ok(grant(9))));
    assert_eq!(departures(&harness).len(), 1, "told once");
    assert!(
        matches!(harness.authority(), Authority::Held { .. }),
        "the campaign went on"
    );
}

#[test]
fn only_the_very_term_is_handed_on() {
    let mut harness = Harness::leading();
    assert!(hand_on(&mut harness, 4).is_empty());
    assert!(hand_on(&mut harness, 6).is_empty());
    assert!(matches!(harness.authority(), Authority::Held { .. }));
}

/// Members of a quorum that were not of one mind say so, and have the term yet.
#[test]
fn what_became_of_a_term_whose_heir_was_overtaken_is_for_the_next_attempt_to_say() {
    let (mut harness, request) = handing_on();
    harness.answer(request.id, Reply::Acquired(Ok(Acquired::Superseded)));
    assert_eq!(departures(&harness), vec![]);
    let next = harness.run_to_request();
    assert_ne!(attempt_of(&next), attempt_of(&request));
    harness.answer(next.id, Reply::Acquired(Ok(grant_after(5))));
    assert_eq!(departures(&harness), vec![Departure::Answered(Released::Vacated)]);
}

#[test]
fn a_term_whose_heir_was_overtaken_is_released_if_nobody_wants_it_any_more() {
    for withdrawn_first in [false, true] {
        let (mut harness, request) = handing_on();
        let overtaken = || Reply::Acquired(Ok(Acquired::Superseded));
        let release = if withdrawn_first {
            assert_eq!(harness.command(Command::Withdraw { name: job() }), vec![]);
            harness.answer(request.id, overtaken());
            let look = harness.run_to_request();
            assert!(matches!(look.operation, Operation::Look(_)), "{look:?}");
            only(harness.answer(look.id, Reply::Looked(Ok(Some(still_ours())))))
        } else {
            let mut at_once = harness.answer(request.id, overtaken());
            while let Some(next) = at_once.pop() {
                at_once = harness.answer(next.id, overtaken());
            }
            only(harness.command(Command::Withdraw { name: job() }))
        };
        assert!(matches!(&release.operation, Operation::Release(releases) if releases[0].token == token(5)));
        harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)]));
        assert_eq!(departures(&harness), vec![Departure::Answered(Released::Vacated)]);
        assert!(harness.engine.is_idle());
    }
}

#[test]
fn a_term_whose_heir_was_overtaken_and_that_is_gone_at_its_release_is_not_told_as_anothers() {
    let (mut harness, request) = handing_on();
    let overtaken = || Reply::Acquired(Ok(Acquired::Superseded));
    let mut at_once = harness.answer(request.id, overtaken());
    while let Some(next) = at_once.pop() {
        at_once = harness.answer(next.id, overtaken());
    }
    let release = only(harness.command(Command::Withdraw { name: job() }));
    harness.answer(release.id, Reply::Released(vec![Ok(Released::NotYours(None))]));
    let told = departures(&harness);
    assert!(
        matches!(told.as_slice(), [Departure::Unconfirmed { .. }]),
        "{told:?}"
    );
}

#[test]
fn a_term_whose_heirs_are_overtaken_again_and_again_is_given_up_when_it_has_surely_expired() {
    let (mut harness, mut request) = handing_on();
    let begun = harness.now;
    while departures(&harness).is_empty() {
        harness.answer(request.id, Reply::Acquired(Ok(Acquired::Superseded)));
        request = harness.run_to_request();
    }
    let told = departures(&harness);
    assert!(
        matches!(told.as_slice(), [Departure::Unconfirmed { .. }]),
        "{told:?}"
    );
    assert!(harness.now.since(begun) >= timing().ttl().duration());
}

/// A renewal may have been under way when it was handed on: the term can last for a ttl from then.
#[test]
fn what_was_handed_on_is_given_up_no_sooner_than_a_ttl_after_it() {
    let mut harness = Harness::leading();
    harness.pass(seconds(9.0));
    let handed_on_at = harness.now;
    let mut request = only(hand_on(&mut harness, 5));
    while departures(&harness).is_empty() {
        harness.answer(request.id, Reply::Acquired(Err(unreachable())));
        if departures(&harness).is_empty() {
            request = harness.run_to_request();
        }
    }
    // The next try after it would have been a retry interval later, or two.
    let next_try = harness.wake.expect("it goes on").at;
    assert!(
        next_try.since(handed_on_at) >= seconds(30.0),
        "{:?}",
        next_try.since(handed_on_at)
    );
}
