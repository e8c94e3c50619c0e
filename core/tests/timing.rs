//! What a timing must keep to, and what it promises.
use std::time::Duration;
use tenure_core::*;

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn the_advised_timing_is_sound_for_every_ttl() {
    for ttl_ms in (100..2000)
        .chain((2000..86_400_000).step_by(99_991))
        .chain([86_400_000])
    {
        let timing = Timing::of(Ttl::from_millis(ttl_ms).unwrap());
        assert!(timing.explain().outage_survived > Duration::ZERO);
    }
}

#[test]
fn the_presets_are_what_their_sources_say() {
    let batch = Timing::batch();
    assert_eq!(
        (batch.ttl().as_millis(), batch.renew_every()),
        (30_000, milliseconds(10_000))
    );
    let controller = Timing::controller();
    assert_eq!(
        (controller.ttl().as_millis(), controller.renew_every()),
        (15_000, milliseconds(2000))
    );
    // RenewDeadline 10 s: without a renewal for that long, no new work.
    assert_eq!(
        controller.ttl().duration() - controller.grace(),
        milliseconds(10_000)
    );
}

#[test]
fn trust_takes_off_twice_the_rate_error_and_the_step_allowance() {
    let timing = TimingOptions {
        clock_rate_error_ppm: 1000,
        ..TimingOptions::new(milliseconds(10_000))
    };
    let timing = TimingOptions {
        step_allowance: Some(milliseconds(5)),
        ..timing
    }
    .check()
    .unwrap();
    assert_eq!(
        timing.trust(Ttl::from_secs(10).unwrap()),
        milliseconds(10_000 - 20 - 5)
    );
    assert_eq!(
        timing.trust(Ttl::from_secs(20).unwrap()),
        milliseconds(20_000 - 40 - 5)
    );
}

#[test]
fn every_violation_is_listed_at_once() {
    let options = TimingOptions {
        renew_every: Some(milliseconds(200_000_000)),
        retry_every: Some(Duration::ZERO),
        request_timeout: Some(Duration::ZERO),
        spread: Some(milliseconds(80_000_000)),
        ..TimingOptions::new(milliseconds(172_800_000))
    };
    let TimingError(violations) = options.check().unwrap_err();
    let text = TimingError(violations.clone()).to_string();
    assert!(matches!(violations[0], Violation::TtlOutOfRange(_)), "{text}");
    for kind in [
        "request time-out",
        "retry interval",
        "not within the ttl",
        "may be trusted",
        "spread",
    ] {
        assert!(text.contains(kind), "{kind} is missing in: {text}");
    }
}

#[test]
fn an_impossible_rate_error_hides_no_other_violation() {
    let options = TimingOptions {
        retry_every: Some(Duration::ZERO),
        spread: Some(milliseconds(20_000)),
        clock_rate_error_ppm: 100_001,
        ..TimingOptions::new(milliseconds(30_000))
    };
    let TimingError(violations) = options.check().unwrap_err();
    assert!(
        matches!(
            violations[..],
            [
                Violation::ClockRateError { .. },
                Violation::RetryInterval { .. },
                Violation::SpreadTooWide { .. }
            ]
        ),
        "{violations:?}"
    );
}

#[test]
fn impossible_ttls_are_refused_with_the_number_and_the_range() {
    for (ttl, shown) in [
        (Duration::ZERO, "0ns"),
        (milliseconds(99), "99ms"),
        (milliseconds(86_400_001), "86400.001s"),
    ] {
        let error = TimingOptions::new(ttl).check().unwrap_err().to_string();
        assert!(
            error.contains(&format!("ttl {shown} is outside 100ms to 24h")),
            "{error}"
        );
    }
}

#[test]
fn a_renewal_that_is_not_shorter_than_the_ttl_is_refused() {
    for renew_ms in [10_000, 10_001] {
        let renew_every = Some(milliseconds(renew_ms));
        let error = TimingOptions {
            renew_every,
            ..TimingOptions::new(milliseconds(10_000))
        }
        .check()
        .unwrap_err();
        assert!(
            error
                .0
                .iter()
                .any(|violation| matches!(violation, Violation::RenewalNotWithinTtl { .. }))
        );
    }
}

#[test]
fn one_lost_renewal_must_not_lose_the_lease() {
    let options = TimingOptions {
        renew_every: Some(milliseconds(4600)),
        grace: Some(Duration::ZERO),
        ..TimingOptions::new(milliseconds(10_000))
    };
    let TimingError(violations) = options.check().unwrap_err();
    assert!(
        matches!(violations[..], [Violation::OneLostRenewalLosesTheLease { .. }]),
        "{violations:?}"
    );
}

#[test]
fn the_promises_of_the_batch_preset_follow_from_its_numbers() {
    let promises = Timing::batch().explain();
    // 29.92 s trusted, less a renewal of 10 s, a retry of 1 s and a request of 3 s.
    assert_eq!(promises.outage_survived, milliseconds(15_920));
    assert_eq!(promises.outage_unnoticed, milliseconds(10_920));
    assert_eq!(
        (
            promises.leader_requests_per_minute,
            promises.standby_requests_per_minute
        ),
        (6, 2)
    );
    assert!(promises.takeover_after_crash < milliseconds(33_500));
    let words = promises.to_string();
    for word in [
        "Outage tolerated",
        "500 ppm",
        "Take-over after a crash",
        "Graceful hand-over",
        "a minute",
    ] {
        assert!(words.contains(word), "{word} is missing in: {words}");
    }
}

#[test]
fn the_advice_keeps_to_the_rules_of_thumb() {
    for round_trip_us in [50, 1000, 20_000, 150_000, 3_000_000] {
        let round_trip = Duration::from_micros(round_trip_us);
        let timing = Timing::advised(round_trip);
        assert!(timing.renew_every() >= round_trip * 10);
        assert!(timing.ttl().duration() >= timing.renew_every() * 3);
        assert!(timing.request_timeout() >= round_trip * 3);
    }
}

#[test]
fn a_ttl_outside_the_range_of_the_store_is_refused_with_both() {
    let ttl = |seconds| Ttl::from_secs(seconds).unwrap();
    let store = StoreTraits {
        kind: "etcd",
        location: "here".to_owned(),
        timekeeper: Timekeeper::Session,
        durability: Durability::Safe,
        watch: WatchSource::Push,
        token_source: TokenSource::Revision,
        batch_max: std::num::NonZeroUsize::MIN,
        ttl_min: ttl(5),
        ttl_max: ttl(600),
    };
    for seconds in [4, 601] {
        let error = Timing::of(ttl(seconds)).fits(&store).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("ttl {seconds}s is outside 5s to 600s, the range of the etcd store")
        );
    }
    for seconds in [5, 600] {
        Timing::of(ttl(seconds)).fits(&store).unwrap();
    }
}
