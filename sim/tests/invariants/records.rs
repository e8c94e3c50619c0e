//! What the store keeps.

use super::*;

#[test]
fn admitting_an_older_token_is_a_breach() {
    let mut law = FenceIsMonotone::default();
    sound(law.admitted(10));
    sound(law.admitted(10));
    broken(law.admitted(9), "fence-is-monotone");
}

#[test]
fn a_write_from_an_old_value_is_a_breach() {
    let mut law = NoLostUpdate::default();
    sound(law.accepted(1, 0, 10));
    sound(law.accepted(2, 1, 11));
    broken(law.accepted(3, 1, 11), "no-lost-update");
}

#[test]
fn a_change_of_a_held_lease_is_a_breach() {
    let (before, after) = (truth(1, 10, 1, 1_000), truth(2, 11, 1, 2_000));
    sound(no_change_without_cause(None, Some(after), 0));
    sound(no_change_without_cause(Some(before), Some(before), 0));
    sound(no_change_without_cause(Some(before), Some(after), 1_000));
    sound(no_change_without_cause(
        Some(before),
        Some(truth(1, 11, 2, 2_000)),
        500,
    ));
    let law = "no-change-without-cause";
    broken(no_change_without_cause(Some(before), Some(after), 999), law);
    broken(
        no_change_without_cause(Some(before), Some(truth(1, 11, 1, 2_000)), 999),
        law,
    );
    broken(no_change_without_cause(Some(before), None, 2_000), law);
}

#[test]
fn an_earlier_attempt_that_takes_what_a_later_one_had_is_a_breach_whatever_became_of_that() {
    let (before, after) = (truth(1, 10, 2, 1_000), truth(1, 11, 1, 2_000));
    let law = "no-change-without-cause";
    broken(no_change_without_cause(Some(before), Some(after), 1_000), law);
    let released = Truth {
        released: true,
        ..before
    };
    broken(no_change_without_cause(Some(released), Some(after), 500), law);
}

#[test]
fn a_renewal_that_revives_or_changes_is_a_breach() {
    let law = "renewal-is-inert";
    let (before, after) = (truth(1, 10, 1, 1_000), truth(1, 10, 1, 2_000));
    sound(renewal_is_inert(Some(before), Some(after), (1, 10, 1), 999));
    sound(renewal_is_inert(Some(before), Some(before), (2, 9, 1), 5_000));
    broken(
        renewal_is_inert(Some(before), Some(after), (1, 10, 1), 1_000),
        law,
    );
    broken(renewal_is_inert(Some(before), Some(after), (2, 10, 1), 999), law);
    broken(
        renewal_is_inert(Some(before), Some(truth(1, 11, 1, 2_000)), (1, 10, 1), 999),
        law,
    );
    broken(renewal_is_inert(None, Some(after), (1, 10, 1), 999), law);
}

#[test]
fn a_release_of_another_term_is_a_breach() {
    let law = "release-touches-only-its-term";
    let before = truth(1, 10, 1, 1_000);
    let released = Truth {
        released: true,
        ..before
    };
    sound(release_touches_only_its_term(
        Some(before),
        Some(released),
        (1, 10, 1),
    ));
    sound(release_touches_only_its_term(
        Some(before),
        Some(before),
        (2, 9, 1),
    ));
    broken(
        release_touches_only_its_term(Some(before), Some(released), (1, 10, 2)),
        law,
    );
    broken(release_touches_only_its_term(Some(before), None, (1, 10, 1)), law);
}
