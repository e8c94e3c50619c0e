//! What a process may believe.

use super::*;

#[test]
fn two_promised_one_lease_is_a_breach() {
    let mut law = Exclusivity::default();
    sound(law.granted(1, 10, 1, 1_000, 500));
    law.extended(10, 1_200, 500);
    broken(law.granted(2, 11, 1, 1_699, 500), "one-holder-by-the-store");

    let mut law = Exclusivity::default();
    sound(law.granted(1, 10, 1, 1_000, 500));
    sound(law.granted(2, 11, 1, 1_500, 500));
    law.vacated(11);
    sound(law.granted(1, 12, 2, 1_501, 500));
    sound(law.granted(1, 13, 3, 1_502, 500));
}

#[test]
fn believing_in_what_is_anothers_or_over_is_a_breach() {
    let law = "belief-is-sound";
    let mine = believed(10, 1_000);
    sound(belief_is_sound(1, mine, Some(truth(1, 10, 1, 5)), 1_000, 999));
    sound(belief_is_sound(1, mine, None, 0, 1_000));
    broken(belief_is_sound(1, mine, Some(truth(1, 10, 1, 5)), 999, 999), law);
    broken(
        belief_is_sound(1, mine, Some(truth(2, 11, 1, 5)), 5_000, 500),
        law,
    );
    broken(belief_is_sound(1, mine, None, 5_000, 500), law);
    let released = Truth {
        released: true,
        ..truth(1, 10, 1, 5)
    };
    broken(belief_is_sound(1, mine, Some(released), 5_000, 500), law);
}

#[test]
fn two_believers_are_a_breach_and_one_after_the_other_is_none() {
    let (early, late) = ((1, believed(10, 500)), (2, believed(11, 1_000)));
    sound(one_believer(early, late, 500));
    broken(one_believer(early, late, 499), "one-believer");
}

#[test]
fn belief_that_comes_back_or_grows_by_itself_is_a_breach() {
    let law = "belief-never-extends-late";
    let granted = Some(Extension {
        sent_local: 100,
        ttl: 900,
    });
    let nothing = Believed::default();
    sound(belief_never_extends_late(
        nothing,
        believed(10, 1_000),
        granted,
        150,
    ));
    sound(belief_never_extends_late(
        believed(10, 500),
        believed(10, 1_000),
        granted,
        499,
    ));
    sound(belief_never_extends_late(believed(10, 500), nothing, None, 400));
    broken(
        belief_never_extends_late(nothing, believed(10, 1_001), granted, 150),
        law,
    );
    broken(
        belief_never_extends_late(believed(10, 500), believed(10, 1_000), granted, 500),
        law,
    );
    broken(
        belief_never_extends_late(believed(10, 500), believed(10, 600), None, 400),
        law,
    );
    broken(
        belief_never_extends_late(believed(10, 500), believed(10, 400), None, 450),
        law,
    );
}

#[test]
fn term_that_begins_when_it_is_over_is_a_breach() {
    sound(late_grant_begins_no_term(500, 499));
    broken(late_grant_begins_no_term(500, 500), "late-grant-begins-no-term");
}

#[test]
fn authority_beyond_the_deadline_is_a_breach() {
    sound(authority_ends_at_the_deadline(10, believed(10, 500), 499));
    sound(authority_ends_at_the_deadline(0, believed(10, 500), 500));
    broken(
        authority_ends_at_the_deadline(10, believed(10, 500), 500),
        "belief-never-extends-late",
    );
    broken(
        authority_ends_at_the_deadline(0, believed(10, 500), 499),
        "belief-never-extends-late",
    );
}
