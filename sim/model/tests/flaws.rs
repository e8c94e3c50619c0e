//! The model notices what a store does wrong, names the promise that it breaks, and tells it by a shortest way.

use tenure_model::{Configuration, Feature, Flaw, Invariant, Limits, Model};

/// What the flaw breaks, and in how many moves.
fn found(flaw: Flaw) -> (Invariant, usize) {
    let configuration = Configuration {
        features: vec![Feature::Duplicates],
        ..Configuration::quick()
    };
    let report = Model::with_flaw(configuration, flaw).search(Limits::default(), |_| {});
    let trace = report
        .violation
        .unwrap_or_else(|| panic!("{flaw:?} was not noticed"));
    (trace.broken, trace.lines.len())
}

#[test]
fn a_release_that_ignores_the_term_is_found() {
    assert_eq!(
        found(Flaw::ReleaseIgnoresTerm),
        (Invariant::ReleasesOnlyItsOwn, 9)
    );
}

#[test]
fn a_release_that_ignores_whose_term_it_is_is_found() {
    assert_eq!(
        found(Flaw::ReleaseIgnoresProcess),
        (Invariant::ReleasesOnlyItsOwn, 8)
    );
}

#[test]
fn a_renewal_that_revives_an_expired_lease_is_found() {
    assert_eq!(
        found(Flaw::RenewalRevivesExpired),
        (Invariant::RenewalIsInert, 17)
    );
}

#[test]
fn a_renewal_that_revives_a_released_lease_is_found() {
    assert_eq!(
        found(Flaw::RenewalRevivesReleased),
        (Invariant::RenewalIsInert, 7)
    );
}

#[test]
fn a_term_that_is_granted_again_without_being_extended_is_found() {
    assert_eq!(found(Flaw::AgainIsNotExtended), (Invariant::BeliefIsTrue, 18));
}

#[test]
fn a_term_that_is_granted_again_after_its_release_is_found() {
    assert_eq!(found(Flaw::AgainAfterRelease), (Invariant::TokenOnce, 6));
}

#[test]
fn a_token_that_does_not_rise_is_found() {
    assert_eq!(found(Flaw::TokenConstant), (Invariant::TokensRise, 7));
}

#[test]
fn a_lease_that_is_taken_from_its_holder_is_found() {
    assert_eq!(found(Flaw::TakesHeld), (Invariant::OneHolder, 4));
}
