//! Every law is broken once by hand, and says so; and is silent about what is sound.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;
use tenure_core::{Attempt, FencingToken, Lease};
use tenure_core::{Candidate, CandidateId, Cause, Fault, Incarnation, LeaseName, Note, StoreError, Ttl};
use tenure_sim::invariants::*;
use tenure_sim::plan::Assumptions;

/// Fails unless this verdict is a breach of the law with this name.
fn broken(verdict: Verdict, law: &str) {
    let breach = verdict.expect_err("a breach");
    assert_eq!(breach.law.name, law);
    assert!(!breach.what.is_empty());
}

fn sound(verdict: Verdict) {
    assert_eq!(verdict, Ok(()));
}

fn truth(holder: u64, token: u64, attempt: u64, expires_ms: u64) -> Truth {
    let released = false;
    Truth {
        holder,
        token,
        attempt,
        expires_ms,
        released,
    }
}

fn believed(token: u64, until: u64) -> Believed {
    Believed {
        token,
        until_local: until,
        until_real: until,
    }
}

#[test]
fn every_law_has_a_name_of_its_own_and_a_guarantee() {
    for (place, law) in LAWS.iter().enumerate() {
        assert!(law.guarantee.starts_with('G'), "{law:?}");
        assert!(law.source.starts_with('I'), "{law:?}");
        assert!(
            LAWS[..place].iter().all(|other| other.name != law.name),
            "{law:?}"
        );
    }
}

#[test]
fn laws_apply_only_where_their_assumptions_hold() {
    let all = Assumptions {
        rate: true,
        step: true,
        store: true,
    };
    assert!(Assumes::RateStepStore.holds(all));
    for broken in [
        Assumptions { rate: false, ..all },
        Assumptions { step: false, ..all },
        Assumptions { store: false, ..all },
    ] {
        assert!(!Assumes::RateStepStore.holds(broken));
        assert!(Assumes::Nothing.holds(broken));
        assert!(Assumes::StoreOrClock.holds(broken));
        assert_eq!(Assumes::Store.holds(broken), broken.store);
    }
}

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

#[test]
fn a_token_that_does_not_rise_is_a_breach_unless_the_store_forgot_and_its_clock_is_behind() {
    let mut law = TokensRise::default();
    sound(law.granted(10, 10));
    broken(law.granted(10, 20), "tokens-rise");

    let mut law = TokensRise::default();
    sound(law.granted(10, 10));
    law.forgot();
    sound(law.granted(11, 11));
    assert!(law.promised());
    sound(law.granted(5, 5));
    assert!(!law.promised());
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
fn a_term_given_back_without_a_release_is_a_breach() {
    sound(release_is_prompt(10, true));
    broken(release_is_prompt(10, false), "release-follows-at-once");
}

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

#[test]
fn a_release_before_the_end_of_work_or_belief_is_a_breach() {
    let mut law = ReleaseComesLast::default();
    law.began(10);
    broken(law.released(10, 0), "release-comes-last");
    law.ended(10);
    broken(law.released(10, 10), "release-comes-last");
    sound(law.released(10, 11));
}

#[test]
fn an_end_without_a_reason_is_a_breach() {
    let law = "end-has-a-reason";
    let record = Some(truth(1, 10, 1, 1_000));
    sound(end_has_a_reason(&Cause::Deadline(None), (1, 10), record, 500, 0));
    sound(end_has_a_reason(&Cause::Vanished, (1, 10), record, 1_000, 400));
    sound(end_has_a_reason(&Cause::Vanished, (1, 9), record, 500, 400));
    broken(
        end_has_a_reason(&Cause::Deadline(None), (1, 10), record, 500, 1),
        law,
    );
    broken(end_has_a_reason(&Cause::Vanished, (1, 10), record, 999, 400), law);
    let succeeded = Cause::Succeeded {
        token: FencingToken::new(11).unwrap(),
        by: None,
    };
    broken(end_has_a_reason(&succeeded, (1, 10), record, 999, 400), law);
}

#[test]
fn a_campaign_that_ends_by_a_passing_error_is_a_breach() {
    let error = |fault| StoreError::not_applied(fault, "");
    sound(campaign_end_is_a_misconfiguration(&error(Fault::Forbidden)));
    let verdict = campaign_end_is_a_misconfiguration(&error(Fault::Unreachable));
    broken(verdict, "only-a-misconfiguration-ends-a-campaign");
}

#[test]
fn a_term_that_begins_or_ends_twice_is_a_breach() {
    let law = "each-term-begins-and-ends-once";
    let mut once = OnceEach::default();
    sound(once.is_new(10));
    sound(once.began(10));
    sound(once.believes(10));
    broken(once.believes(11), law);
    sound(once.ended(10));
    broken(once.is_new(10), law);
    broken(once.ended(10), law);
    sound(once.began(11));
    broken(once.began(12), law);
}

#[test]
fn a_second_term_of_a_held_attempt_is_a_breach() {
    let before = Some(truth(1, 10, 3, 1_000));
    sound(OneTermPerAttempt::granted(before, 1, 3, 10, 999));
    sound(OneTermPerAttempt::granted(before, 1, 3, 11, 1_000));
    broken(
        OneTermPerAttempt::granted(before, 1, 3, 11, 999),
        "a-lost-reply-costs-no-second-term",
    );
    let released = before.map(|before| Truth {
        released: true,
        ..before
    });
    broken(
        OneTermPerAttempt::granted(released, 1, 3, 11, 1_000),
        "a-lost-reply-costs-no-second-term",
    );
    sound(OneTermPerAttempt::granted(released, 1, 4, 11, 1_000));
}

fn candidate(id: &str, bits: u128) -> Candidate {
    let (id, incarnation) = (CandidateId::new(id).unwrap(), Incarnation::from_bits(bits));
    Candidate { id, incarnation }
}

fn held_by(holder: Candidate) -> Lease {
    Lease {
        name: LeaseName::new("job").unwrap(),
        holder,
        token: FencingToken::new(1).unwrap(),
        attempt: Attempt::FIRST,
        terms: 1,
        ttl: Ttl::MIN,
        remaining: Duration::ZERO,
        released: false,
        held_for: Duration::ZERO,
        renewed_ago: Duration::ZERO,
        asked_to_step_down: false,
        note: Note::default(),
    }
}

#[test]
fn a_twin_that_is_not_told_is_a_breach() {
    let me = candidate("a", 1);
    sound(twin_is_told(&me, &held_by(candidate("a", 2)), true));
    sound(twin_is_told(&me, &held_by(candidate("b", 2)), false));
    broken(
        twin_is_told(&me, &held_by(candidate("a", 2)), false),
        "twin-is-told",
    );
    broken(
        twin_is_told(&me, &held_by(candidate("a", 1)), true),
        "twin-is-told",
    );
}

#[test]
fn nobody_leading_or_a_needless_change_is_a_breach() {
    sound(leader_exists(10, Duration::ZERO));
    broken(leader_exists(0, Duration::ZERO), "somebody-leads-in-time");
    sound(leader_is_stable(10, 10));
    broken(leader_is_stable(10, 11), "no-fault-no-change");
    sound(outage_is_survived(10, 10, Duration::ZERO));
    broken(
        outage_is_survived(10, 0, Duration::ZERO),
        "short-outage-costs-nothing",
    );
}

#[test]
fn too_many_requests_are_a_breach() {
    let (during, interval) = (Duration::from_secs(50), Duration::from_secs(10));
    sound(request_budget(Role::Standby, 7, during, interval));
    broken(request_budget(Role::Leader, 8, during, interval), "few-requests");
}

#[test]
fn a_wake_up_that_is_not_later_is_a_breach() {
    sound(engine_sleeps(100, 101));
    broken(engine_sleeps(100, 100), "engine-sleeps");
}

#[test]
fn a_request_that_outlasts_its_term_is_a_breach() {
    sound(no_request_outlasts(100, 100));
    broken(no_request_outlasts(101, 100), "no-request-outlasts-its-term");
}

#[test]
fn being_told_of_an_earlier_token_is_a_breach() {
    let mut law = ObserversNeverGoBack::default();
    sound(law.told(10));
    sound(law.told(10));
    broken(law.told(9), "observers-never-go-back");
}

#[test]
fn stuck_work_that_leads_on_is_a_breach() {
    sound(stuck_work_ends(1_600, 1_000, 100, 200, 300));
    broken(stuck_work_ends(1_601, 1_000, 100, 200, 300), "stuck-work-ends");
}
