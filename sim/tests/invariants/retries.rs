//! What failed: waited out, tried again, and given up no sooner than it may be.

use super::*;

const PAUSES: Pauses = Pauses {
    least: 100,
    most: 300,
};

#[test]
fn asking_again_too_soon_after_an_error_is_a_breach() {
    let mut failed = Retries::default();
    sound(failed.asks(1, 500, PAUSES, 0));
    failed.failed(1, 200);
    let mut later = failed;
    broken(failed.asks(2, 900, PAUSES, 299), "failure-is-waited-out");
    sound(later.asks(2, 900, PAUSES, 300));
}

#[test]
fn asking_again_too_soon_after_a_time_out_is_a_breach() {
    let mut silent = Retries::default();
    sound(silent.asks(1, 500, PAUSES, 0));
    assert!(!silent.has_failed(499));
    assert!(silent.has_failed(500));
    sound(silent.sleeps(510, 810));
    broken(silent.asks(2, 900, PAUSES, 609), "failure-is-waited-out");
}

#[test]
fn sleeping_through_the_next_try_is_a_breach() {
    let mut failed = Retries::default();
    sound(failed.asks(1, 500, PAUSES, 0));
    sound(failed.sleeps(0, 9_000));
    failed.failed(1, 200);
    sound(failed.sleeps(200, 500));
    broken(failed.sleeps(200, 501), "failure-is-tried-again");
}

#[test]
fn an_answer_binds_nobody_to_a_pause() {
    let mut answered = Retries::default();
    sound(answered.asks(2, 500, PAUSES, 0));
    // Of a request that was given up before.
    answered.failed(1, 10);
    answered.answered(2);
    sound(answered.sleeps(600, 9_000));
    sound(answered.asks(3, 900, PAUSES, 600));
}

#[test]
fn giving_up_a_release_while_its_term_would_last_is_a_breach() {
    sound(release_is_seen_through(900, 100, 1_000));
    broken(
        release_is_seen_through(899, 100, 1_000),
        "release-is-seen-through",
    );
}

#[test]
fn asking_for_what_nobody_wants_is_a_breach() {
    let mut campaign = WithdrawnAsksNoMore::default();
    broken(campaign.asks(1), "withdrawn-asks-no-more");
    campaign.wants();
    sound(campaign.asks(1));
    campaign.ends();
    broken(campaign.asks(1), "withdrawn-asks-no-more");
}
