//! How terms and campaigns end.

use super::*;

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
    for fault in [Fault::Unreachable, Fault::Unauthenticated, Fault::Unreadable] {
        let verdict = campaign_end_is_a_misconfiguration(&error(fault));
        broken(verdict, "only-a-misconfiguration-ends-a-campaign");
    }
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

#[test]
fn a_doubt_that_comes_late_is_a_breach() {
    let law = "doubt-comes-in-time";
    sound(doubt_comes_in_time(believed(10, 1_000), false, 200, 700, 800));
    broken(
        doubt_comes_in_time(believed(10, 1_000), false, 200, 700, 801),
        law,
    );
    broken(
        doubt_comes_in_time(believed(10, 1_000), false, 200, 800, 900),
        law,
    );
    sound(doubt_comes_in_time(believed(10, 1_000), true, 200, 800, 1_000));
    sound(doubt_comes_in_time(believed(10, 1_000), false, 0, 900, 1_000));
    sound(doubt_comes_in_time(believed(0, 0), false, 200, 900, 5_000));
}

#[test]
fn a_wish_that_its_holder_is_not_told_is_a_breach() {
    sound(wish_is_told(10, 10, 10));
    broken(wish_is_told(10, 10, 9), "wish-is-told");
    sound(wish_is_told(10, 0, 9));
    sound(wish_is_told(10, 11, 9));
}
