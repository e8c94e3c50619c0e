//! Which attempt a request carries: one for all tries of a campaign, never the same again after it.

use crate::harness::*;
use std::time::Duration;
use tenure_core::*;

#[test]
fn a_lost_reply_is_asked_again_with_the_same_attempt() {
    let mut harness = Harness::new();
    let first = harness.campaign_once();
    harness.answer(first.id, Reply::Acquired(Err(unreachable())));
    let second = harness.run_to_request();
    assert_eq!(attempt_of(&second), attempt_of(&first));
    harness.now = second.give_up_at;
    harness.input(Input::Tick);
    let third = harness.run_to_request();
    assert_eq!(
        attempt_of(&third),
        attempt_of(&first),
        "a time-out is a lost reply, too"
    );
}

#[test]
fn the_attempt_rotates_on_every_release() {
    let mut harness = Harness::leading();
    let release = only(harness.work_ended(5));
    let before = attempt_of(&release);
    harness.answer(release.id, Reply::Released(vec![Ok(Released::Vacated)]));
    let next = harness.campaign_once();
    assert!(attempt_of(&next) > before);
}

#[test]
fn the_attempt_rotates_even_when_the_release_was_never_confirmed() {
    let mut harness = Harness::leading();
    let release = only(harness.work_ended(5));
    let before = attempt_of(&release);
    assert_eq!(harness.campaign(), vec![], "the campaign waits for the release");
    harness.answer(release.id, Reply::Released(vec![Err(unreachable())]));
    let mut request = harness.run_to_request();
    while is_release(&request) {
        assert_eq!(attempt_of(&request), before);
        harness.answer(request.id, Reply::Released(vec![Err(unreachable())]));
        request = harness.run_to_request();
    }
    assert!(is_acquire(&request) && attempt_of(&request) > before);
}

#[test]
fn the_attempt_rotates_after_a_lost_term() {
    let mut harness = Harness::leading();
    let renewal = harness.run_to_request();
    let before = attempt_of(&renewal);
    harness.answer(renewal.id, Reply::Renewed(vec![Ok(Renewed::Lost(None))]));
    assert!(attempt_of(&harness.campaign_once()) > before);
}

#[test]
fn a_superseded_attempt_is_not_tried_again() {
    let mut harness = Harness::new();
    let first = harness.campaign_once();
    // The next one may be tried at once.
    let mut at_once = harness.answer(first.id, Reply::Acquired(Ok(Acquired::Superseded)));
    let mut last = at_once.pop().unwrap_or_else(|| harness.run_to_request());
    assert!(attempt_of(&last) > attempt_of(&first));
    let mut pauses = Duration::ZERO;
    for _ in 0..10 {
        let answered_at = harness.now;
        let at_once = harness.answer(last.id, Reply::Acquired(Ok(Acquired::Superseded)));
        assert_eq!(
            at_once,
            [],
            "a store that says so again and again is left a pause"
        );
        let next = harness.run_to_request();
        assert!(attempt_of(&next) > attempt_of(&last));
        pauses += harness.now.since(answered_at);
        last = next;
    }
    assert!(pauses > 10 * timing().retry_every(), "{pauses:?} and no longer");
}

/// Whoever was superseded once waits for no release that it might not hear of.
#[test]
fn the_attempt_after_a_superseded_one_is_tried_soon() {
    let mut harness = Harness::new();
    let last = harness.campaign_once();
    let answered_at = harness.now;
    let mut at_once = harness.answer(last.id, Reply::Acquired(Ok(Acquired::Superseded)));
    let next = at_once.pop().unwrap_or_else(|| harness.run_to_request());
    assert!(attempt_of(&next) > attempt_of(&last));
    let waited = harness.now.since(answered_at);
    assert!(waited <= timing().wake_spread(), "{waited:?}");
}

#[test]
fn renewal_and_release_name_incarnation_token_and_attempt() {
    let mut harness = Harness::leading();
    let Operation::Renew(renewals) = harness.run_to_request().operation else {
        panic!("a renewal is due")
    };
    assert_eq!(
        (renewals[0].incarnation, renewals[0].token),
        (me().incarnation, token(5))
    );
    assert_eq!(renewals[0].attempt, Attempt::FIRST);
    let Operation::Release(releases) = only(harness.work_ended(5)).operation else {
        panic!("a release")
    };
    assert_eq!(
        (releases[0].incarnation, releases[0].token),
        (me().incarnation, token(5))
    );
    assert_eq!(releases[0].attempt, Attempt::FIRST);
}
