//! The model notices what a store does wrong, names the promise that it breaks, and tells it by a shortest
//! way.

use tenure_model::{Configuration, Feature, Flaw, Invariant, Limits, Model};

/// What the flaw breaks, and in how many moves.
fn found(flaw: Flaw) -> (Invariant, usize) {
    found_among(flaw, &[Feature::Duplicates], 1)
}

fn found_among(flaw: Flaw, features: &[Feature], late_max: usize) -> (Invariant, usize) {
    let configuration = Configuration {
        features: features.to_vec(),
        late_max,
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

#[test]
fn a_lease_that_a_withdrawn_campaign_has_left_and_does_not_see_is_found() {
    assert_eq!(
        found_among(
            Flaw::LookSeesNothing,
            &[Feature::StoreErrors, Feature::Withdrawals],
            0
        ),
        (Invariant::WithdrawalLeavesNothing, 6)
    );
}

#[test]
fn a_term_that_claims_after_a_later_one_is_found() {
    assert_eq!(
        found_among(Flaw::OlderTermClaims, &[Feature::Fence], 0),
        (Invariant::FenceHolds, 21)
    );
}

#[test]
fn a_write_of_a_term_after_a_later_one_has_claimed_is_found() {
    assert_eq!(
        found_among(Flaw::StaleTermWrites, &[Feature::Fence], 0),
        (Invariant::FenceHolds, 22)
    );
}
