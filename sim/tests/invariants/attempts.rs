//! Tokens, and the attempts that ask for them.

use super::*;

#[test]
fn a_token_that_does_not_rise_is_a_breach_unless_the_store_forgot_and_its_clock_is_behind() {
    let mut law = TokensRise::default();
    sound(law.granted(10, 10));
    broken(law.granted(10, 20), "tokens-rise");

    let mut law = TokensRise::default();
    sound(law.granted(10, 10));
    law.forgot();
    sound(law.granted(5, 5));
    assert!(!law.promised());
}

#[test]
fn a_token_that_does_not_rise_is_a_breach_again_once_one_has_risen_after_a_clean_up() {
    let mut law = TokensRise::default();
    sound(law.granted(10, 10));
    law.forgot();
    sound(law.granted(1_000, 1_000));
    // The clock steps back, and the record that holds 1,000 is there.
    broken(law.granted(960, 960), "tokens-rise");
    assert!(law.promised());
    sound(law.granted(1_001, 960));
}

#[test]
fn a_token_with_two_owners_is_a_breach() {
    let mut law = OneAttemptPerToken::default();
    sound(law.granted(10, 1, 1));
    sound(law.granted(10, 1, 1));
    broken(law.granted(10, 1, 2), "one-attempt-per-token");
}

#[test]
fn asking_again_by_a_spent_attempt_is_a_breach() {
    let mut law = AttemptRotates::default();
    sound(law.asks(1));
    sound(law.asks(1));
    law.began();
    broken(law.asks(1), "attempt-rotates");

    let mut law = AttemptRotates::default();
    sound(law.asks(3));
    law.released(3);
    broken(law.asks(3), "attempt-rotates");
    broken(law.asks(2), "attempt-rotates");
}

#[test]
fn asking_again_by_a_superseded_attempt_is_a_breach() {
    let mut law = AttemptRotates::default();
    sound(law.asks(3));
    law.superseded();
    broken(law.asks(3), "attempt-rotates");
    law.superseded();
    sound(law.asks(4));
}

#[test]
fn another_attempt_while_one_is_unresolved_is_a_breach() {
    let mut law = AttemptRotates::default();
    sound(law.asks(3));
    broken(law.asks(4), "a-lost-reply-costs-no-second-term");

    let mut law = AttemptRotates::default();
    sound(law.asks(3));
    law.given_up();
    sound(law.asks(4));
}

#[test]
fn believing_on_after_a_loss_was_seen_is_a_breach() {
    sound(loss_ends_the_term(10, 0));
    sound(loss_ends_the_term(10, 11));
    sound(loss_ends_the_term(0, 0));
    broken(loss_ends_the_term(10, 10), "loss-seen-ends-the-term");
}

#[test]
fn a_lease_left_by_a_withdrawn_campaign_is_a_breach() {
    let left = Some(truth(1, 10, 3, 1_000));
    broken(
        nothing_is_left(left, (1, 3), 999, false),
        "withdrawal-leaves-nothing",
    );
    sound(nothing_is_left(left, (1, 3), 999, true));
    sound(nothing_is_left(left, (1, 3), 1_000, false));
    sound(nothing_is_left(left, (1, 4), 999, false));
    sound(nothing_is_left(left, (2, 3), 999, false));
    sound(nothing_is_left(None, (1, 3), 999, false));
}

#[test]
fn a_campaign_that_ends_while_its_request_is_awaited_is_a_breach() {
    broken(nothing_is_under_way(1_000, 999), "withdrawal-leaves-nothing");
    sound(nothing_is_under_way(1_000, 1_000));
    sound(nothing_is_under_way(0, 999));
}

#[test]
fn a_term_given_back_without_a_release_is_a_breach() {
    sound(release_is_prompt(10, true));
    broken(release_is_prompt(10, false), "release-follows-at-once");
}
