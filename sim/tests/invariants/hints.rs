//! Being told that a lease is free.

use super::*;

#[test]
fn sleeping_through_a_hint_is_a_breach() {
    let mut standby = HintIsFollowed::default();
    standby.asks(1, 500);
    standby.stands_by(1, 10, 100, 8);
    sound(standby.sleeps(100, 9_000));
    standby.told(10, 200, 8);
    sound(standby.sleeps(200, 208));
    broken(standby.sleeps(200, 209), "hint-is-followed");
    standby.asks(2, 900);
    sound(standby.sleeps(208, 900));
}

#[test]
fn sleeping_through_a_hint_that_came_during_a_request_is_a_breach() {
    let mut standby = HintIsFollowed::default();
    standby.asks(1, 500);
    standby.told(10, 50, 8);
    sound(standby.sleeps(50, 500));
    let mut newer = standby;
    standby.stands_by(1, 10, 100, 8);
    broken(standby.sleeps(100, 109), "hint-is-followed");
    // The answer tells of a later term than the one that was given back.
    newer.stands_by(1, 11, 100, 8);
    sound(newer.sleeps(100, 9_000));
}

#[test]
fn a_hint_binds_nobody_who_does_not_stand_by() {
    let mut failed = HintIsFollowed::default();
    failed.told(10, 10, 8);
    sound(failed.sleeps(10, 9_000));
    failed.asks(1, 500);
    failed.told(10, 50, 8);
    sound(failed.sleeps(500, 9_000));
    failed.stands_by(1, 10, 501, 8);
    sound(failed.sleeps(501, 9_000));
}

#[test]
fn sleeping_through_a_gap_is_a_breach_and_no_older_hint_hides_it() {
    let mut standby = HintIsFollowed::default();
    standby.asks(1, 500);
    let mut told_meanwhile = standby;
    standby.stands_by(1, 10, 100, 8);
    standby.may_have_missed(200, 50);
    sound(standby.sleeps(200, 250));
    broken(standby.sleeps(200, 251), "hint-is-followed");
    // It was given back, too: that is answered sooner.
    standby.told(10, 210, 8);
    broken(standby.sleeps(210, 219), "hint-is-followed");

    told_meanwhile.may_have_missed(40, 50);
    told_meanwhile.told(9, 50, 8);
    told_meanwhile.stands_by(1, 10, 100, 8);
    broken(told_meanwhile.sleeps(100, 109), "hint-is-followed");
}
