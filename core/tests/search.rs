//! What a withdrawn campaign may have left is looked for until it is certain, or has surely expired.

use crate::harness::*;
use std::time::Duration;
use tenure_core::*;

/// 30 s, 50 ms for steps of clocks, 30.015 ms as one may be slow and the other fast by 500 ppm, 3 s for the
/// request: by then a lease taken now has surely expired.
const SURELY_EXPIRED: Duration = Duration::from_nanos(33_080_015_008);

/// A campaign of which nobody knows whether its request was applied, withdrawn; with the look that it sends.
fn searching() -> (Harness, Attempt, Request) {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    harness.answer(request.id, Reply::Acquired(Err(unreachable())));
    let look = only(harness.command(Command::Withdraw { name: job() }));
    (harness, attempt_of(&request), look)
}

/// A campaign that is withdrawn while its first request is under way.
fn withdrawn_under_way() -> (Harness, Request) {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    assert_eq!(harness.command(Command::Withdraw { name: job() }), vec![]);
    (harness, request)
}

#[test]
fn what_a_try_takes_after_its_campaign_was_withdrawn_is_released() {
    let (mut harness, request) = withdrawn_under_way();
    let release = only(harness.answer(request.id, Reply::Acquired(Ok(grant(5)))));
    let Operation::Release(releases) = &release.operation else {
        panic!("{release:?}")
    };
    assert_eq!(
        (releases[0].token, releases[0].attempt),
        (token(5), attempt_of(&request))
    );
    assert!(!harness.leads(), "a withdrawn campaign never leads");
    harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)]));
    assert!(harness.engine.is_idle());
}

#[test]
fn a_try_that_took_nothing_ends_its_withdrawn_campaign() {
    let theirs = Acquired::Held(lease_of(other(), 6, seconds(29.0)));
    let busy = StoreError::not_applied(Fault::Busy, "lease \"job\": the store is busy");
    for answer in [Ok(theirs), Ok(Acquired::Superseded), Err(busy)] {
        let (mut harness, request) = withdrawn_under_way();
        assert_eq!(harness.answer(request.id, Reply::Acquired(answer)), vec![]);
        assert!(harness.engine.is_idle());
        assert!(matches!(harness.events.last(), Some(Event::Withdrawn { .. })));
    }
}

#[test]
fn a_try_of_which_nobody_knows_what_became_is_looked_for() {
    let (mut harness, request) = withdrawn_under_way();
    let look = only(harness.answer(request.id, Reply::Acquired(Err(unreachable()))));
    assert!(matches!(look.operation, Operation::Look(_)));

    let (mut harness, request) = withdrawn_under_way();
    harness.now = request.give_up_at;
    let look = only(harness.input(Input::Tick));
    assert!(matches!(look.operation, Operation::Look(_)));
    assert_eq!(
        harness.answer(request.id, Reply::Acquired(Ok(grant(5)))),
        vec![],
        "too late: the look is to find it"
    );
}

#[test]
fn doubt_about_an_earlier_try_outlasts_one_that_surely_failed_after_the_withdrawal() {
    let mut harness = Harness::new();
    let first = harness.campaign_once();
    harness.answer(first.id, Reply::Acquired(Err(unreachable())));
    let second = harness.run_to_request();
    assert_eq!(harness.command(Command::Withdraw { name: job() }), vec![]);
    let busy = StoreError::not_applied(Fault::Busy, "lease \"job\": the store is busy");
    let look = only(harness.answer(second.id, Reply::Acquired(Err(busy))));
    assert!(matches!(look.operation, Operation::Look(_)));
}

fn fail(harness: &mut Harness, look: &Request, error: StoreError) -> Vec<Request> {
    harness.answer(look.id, Reply::Looked(Err(error)))
}

#[test]
fn a_look_that_fails_is_repeated_after_the_retry_interval() {
    let (mut harness, attempt, look) = searching();
    assert_eq!(fail(&mut harness, &look, unreachable()), vec![]);
    assert!(!harness.engine.is_idle());
    let failed_at = harness.now;
    let again = harness.run_to_request();
    assert!(matches!(again.operation, Operation::Look(_)));
    assert_eq!(harness.now, failed_at.after(timing().retry_every()));
    let left = Lease {
        attempt,
        ..lease_of(me(), 5, seconds(29.0))
    };
    let found = Reply::Looked(Ok(Some(left)));
    assert!(is_release(&only(harness.answer(again.id, found))));
}

#[test]
fn a_look_without_any_answer_is_repeated_too() {
    let (mut harness, _, look) = searching();
    harness.now = look.give_up_at;
    assert_eq!(harness.input(Input::Tick), vec![]);
    assert!(matches!(harness.run_to_request().operation, Operation::Look(_)));
}

#[test]
fn the_search_ends_when_what_was_left_has_surely_expired() {
    let last_chance = SURELY_EXPIRED - timing().retry_every();
    for (passed, goes_on) in [
        (last_chance - Duration::from_nanos(1), true),
        (last_chance, false),
    ] {
        let (mut harness, _, look) = searching();
        harness.pass(passed);
        fail(&mut harness, &look, unreachable());
        assert_eq!(!harness.engine.is_idle(), goes_on, "after {passed:?}");
        let withdrawn = matches!(harness.events.last(), Some(Event::Withdrawn { .. }));
        assert_eq!(withdrawn, !goes_on);
    }
}

/// What was under way may have been applied at the last moment before it was given up.
#[test]
fn the_search_for_a_try_lasts_from_when_the_try_was_given_up() {
    let last_chance = SURELY_EXPIRED - timing().retry_every();
    for (passed, goes_on) in [
        (last_chance - Duration::from_nanos(1), true),
        (last_chance, false),
    ] {
        let (mut harness, request) = withdrawn_under_way();
        harness.now = request.give_up_at;
        let look = only(harness.input(Input::Tick));
        harness.now = request.give_up_at.after(passed);
        fail(&mut harness, &look, unreachable());
        assert_eq!(!harness.engine.is_idle(), goes_on, "after {passed:?}");
    }
}

#[test]
fn a_search_that_only_a_person_can_mend_ends_at_once() {
    let (mut harness, _, look) = searching();
    fail(&mut harness, &look, forbidden());
    assert!(harness.engine.is_idle());
}

#[test]
fn a_search_whose_login_is_refused_goes_on() {
    let (mut harness, _, look) = searching();
    fail(&mut harness, &look, refused_login());
    assert!(!harness.engine.is_idle());
    harness.run_to_request();
}

#[test]
fn a_search_that_finds_a_record_that_cannot_be_read_ends() {
    let (mut harness, _, look) = searching();
    fail(&mut harness, &look, unreadable());
    assert!(harness.engine.is_idle());
}

#[test]
fn a_lease_of_this_process_by_another_attempt_is_left_alone() {
    let (mut harness, attempt, look) = searching();
    let later = Lease {
        attempt: attempt.next(),
        ..lease_of(me(), 5, seconds(29.0))
    };
    assert_eq!(harness.answer(look.id, Reply::Looked(Ok(Some(later)))), vec![]);
    assert!(harness.engine.is_idle());
}

#[test]
fn what_was_left_and_has_expired_or_was_released_needs_no_release() {
    for (remaining, released) in [(0.0, false), (0.0, true)] {
        let (mut harness, attempt, look) = searching();
        let over = Lease {
            attempt,
            released,
            ..lease_of(me(), 5, seconds(remaining))
        };
        assert_eq!(harness.answer(look.id, Reply::Looked(Ok(Some(over)))), vec![]);
        assert!(harness.engine.is_idle());
    }
}

#[test]
fn doubt_about_one_try_is_not_forgotten_for_a_later_one_that_surely_failed() {
    let mut harness = Harness::new();
    let first = harness.campaign_once();
    harness.answer(first.id, Reply::Acquired(Err(unreachable())));
    let second = harness.run_to_request();
    let busy = StoreError::not_applied(Fault::Busy, "lease \"job\": the store is busy");
    harness.answer(second.id, Reply::Acquired(Err(busy)));
    let look = only(harness.command(Command::Withdraw { name: job() }));
    assert!(matches!(look.operation, Operation::Look(_)));
}

#[test]
fn tries_that_surely_failed_leave_nothing_to_look_for() {
    let mut harness = Harness::new();
    let request = harness.campaign_once();
    let busy = StoreError::not_applied(Fault::Busy, "lease \"job\": the store is busy");
    harness.answer(request.id, Reply::Acquired(Err(busy)));
    assert_eq!(harness.command(Command::Withdraw { name: job() }), vec![]);
    assert!(harness.engine.is_idle());
}

#[test]
fn a_release_is_repeated_exactly_as_long_as_the_lease_may_live() {
    let last_chance = SURELY_EXPIRED - timing().retry_every();
    for (passed, goes_on) in [
        (last_chance - Duration::from_nanos(1), true),
        (last_chance, false),
    ] {
        let mut harness = Harness::leading();
        let release = only(harness.work_ended(5));
        harness.pass(passed);
        harness.answer(release.id, Reply::Released(vec![Err(unreachable())]));
        assert_eq!(!harness.engine.is_idle(), goes_on, "after {passed:?}");
    }
}

/// Somebody campaigns anew while it is looked for what the campaign before has left.
fn wanted_again() -> (Harness, Attempt, Request) {
    let (mut harness, attempt, look) = searching();
    assert_eq!(harness.campaign(), vec![]);
    (harness, attempt, look)
}

#[test]
fn a_campaign_begins_after_a_search_that_found_nothing() {
    let (mut harness, attempt, look) = wanted_again();
    let request = only(harness.answer(look.id, Reply::Looked(Ok(None))));
    assert!(is_acquire(&request));
    assert_eq!(attempt_of(&request), attempt.next());
}

#[test]
fn a_campaign_begins_after_what_was_found_is_released() {
    let (mut harness, attempt, look) = wanted_again();
    let left = Lease {
        attempt,
        ..lease_of(me(), 5, seconds(29.0))
    };
    let release = only(harness.answer(look.id, Reply::Looked(Ok(Some(left)))));
    assert!(is_release(&release));
    let request = only(harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)])));
    assert!(is_acquire(&request));
}

#[test]
fn a_campaign_that_waits_for_a_search_can_be_withdrawn() {
    let (mut harness, _, look) = wanted_again();
    harness.command(Command::Withdraw { name: job() });
    assert_eq!(harness.answer(look.id, Reply::Looked(Ok(None))), vec![]);
    assert!(harness.engine.is_idle());
}

/// It was granted once, though too late to be believed: what comes of asking again says nothing of that.
#[test]
fn what_was_granted_too_late_is_looked_for_whatever_becomes_of_the_next_try() {
    let timing = Timing::of(Ttl::from_secs(30).unwrap());
    let mut harness = Harness::with(timing, 1);
    let request = harness.campaign_once();
    harness.pass(seconds(1.0));
    let again = only(harness.answer(request.id, Reply::Acquired(Ok(grant_for(5, 1)))));
    assert_eq!(attempt_of(&again), attempt_of(&request));
    assert_eq!(harness.command(Command::Withdraw { name: job() }), vec![]);
    let busy = StoreError::not_applied(Fault::Busy, "lease \"job\": the store is busy");
    let look = only(harness.answer(again.id, Reply::Acquired(Err(busy))));
    assert!(matches!(look.operation, Operation::Look(_)));
}
