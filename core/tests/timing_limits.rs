//! Every inequality of a timing, at its very edge: what just fits is taken, and a step further is refused.
use std::time::Duration;
use tenure_core::*;

const TTL: Duration = Duration::from_secs(10);

/// 10 s less twice 500 ppm of it less 50 ms.
const TRUST: Duration = Duration::from_millis(10_000 - 10 - 50);

const STEP: Duration = Duration::from_nanos(1);

const fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn options() -> TimingOptions {
    TimingOptions::new(TTL)
}

fn violations(options: TimingOptions) -> Vec<Violation> {
    options
        .check()
        .map_or_else(|TimingError(violations)| violations, |_| Vec::new())
}

#[test]
fn a_millisecond_is_the_shortest_interval_and_time_out() {
    let shortest = |renew_every, retry_every, request_timeout| TimingOptions {
        renew_every: Some(renew_every),
        retry_every: Some(retry_every),
        request_timeout: Some(request_timeout),
        ..options()
    };
    let whole = milliseconds(1);
    let below = whole - STEP;
    assert_eq!(violations(shortest(whole, whole, whole)), []);
    assert!(matches!(
        violations(shortest(below, below, whole))[..],
        [
            Violation::TooShort {
                what: "renewal interval",
                ..
            },
            Violation::RetryInterval { .. }
        ]
    ));
    assert!(matches!(
        violations(shortest(whole, below, whole))[..],
        [Violation::RetryInterval { .. }]
    ));
    assert!(matches!(
        violations(shortest(whole, whole, below))[..],
        [Violation::TooShort {
            what: "request time-out",
            ..
        }]
    ));
}

#[test]
fn the_retry_interval_reaches_up_to_the_renewal_interval() {
    let retry = |retry_every| TimingOptions {
        renew_every: Some(milliseconds(2_000)),
        retry_every: Some(retry_every),
        ..options()
    };
    assert_eq!(violations(retry(milliseconds(2_000))), []);
    assert!(matches!(
        violations(retry(milliseconds(2_000) + STEP))[..],
        [Violation::RetryInterval { .. }]
    ));
}

#[test]
fn two_renewals_and_a_request_may_fill_the_trust_and_no_more() {
    let renewal = |renew_every| TimingOptions {
        renew_every: Some(renew_every),
        request_timeout: Some(milliseconds(1_000)),
        grace: Some(Duration::ZERO),
        ..options()
    };
    let longest = (TRUST - milliseconds(1_000)) / 2;
    assert_eq!(violations(renewal(longest)), []);
    assert!(matches!(
        violations(renewal(longest + STEP))[..],
        [Violation::OneLostRenewalLosesTheLease { .. }]
    ));
}

#[test]
fn a_renewal_a_request_and_the_grace_may_fill_the_trust_and_no_more() {
    let grace = |grace| TimingOptions {
        renew_every: Some(milliseconds(2_000)),
        request_timeout: Some(milliseconds(1_000)),
        grace: Some(grace),
        ..options()
    };
    let longest = TRUST - milliseconds(3_000);
    assert_eq!(violations(grace(longest)), []);
    assert!(matches!(
        violations(grace(longest + STEP))[..],
        [Violation::DoubtBeforeTheFirstRenewal { .. }]
    ));
}

#[test]
fn the_spread_reaches_up_to_a_quarter_of_the_ttl() {
    let spread = |spread| TimingOptions {
        spread: Some(spread),
        ..options()
    };
    assert_eq!(violations(spread(TTL / 4)), []);
    assert!(matches!(
        violations(spread(TTL / 4 + STEP))[..],
        [Violation::SpreadTooWide { .. }]
    ));
}

#[test]
fn a_tenth_is_the_greatest_clock_rate_error() {
    let rate = |clock_rate_error_ppm| TimingOptions {
        clock_rate_error_ppm,
        ..options()
    };
    assert_eq!(violations(rate(100_000)), []);
    for ppm in [100_001, u32::MAX] {
        assert_eq!(violations(rate(ppm)), [Violation::ClockRateError { ppm }]);
    }
}

/// Its own clock a tenth fast, the store's a tenth slow: 10 s there are 11/9 of that here.
#[test]
fn a_take_over_is_promised_for_clocks_that_differ_as_much_as_is_allowed() {
    let timing = TimingOptions {
        clock_rate_error_ppm: 100_000,
        step_allowance: Some(Duration::ZERO),
        spread: Some(Duration::ZERO),
        ..options()
    }
    .check()
    .unwrap();
    let lasts = timing.explain().takeover_after_crash - timing.request_timeout();
    assert!(lasts >= TTL * 11 / 9, "{lasts:?}");
    assert!(lasts < TTL * 11 / 9 + milliseconds(1), "{lasts:?}");
}

#[test]
fn an_impossible_ttl_is_measured_with_the_nearest_possible_one() {
    let renewal = |ttl, renew_every| TimingOptions {
        renew_every: Some(renew_every),
        ..TimingOptions::new(ttl)
    };
    // Fits into 24 h, and not into 100 ms.
    let hours = violations(renewal(milliseconds(48 * 3_600_000), milliseconds(8 * 3_600_000)));
    assert!(matches!(hours[..], [Violation::TtlOutOfRange(_)]), "{hours:?}");
    // So does this; measured with 24 h it would look sound.
    let short = violations(renewal(milliseconds(50), milliseconds(200)));
    assert!(
        short.iter().any(|violation| matches!(
            violation,
            Violation::RenewalNotWithinTtl { ttl, .. } if *ttl == Ttl::MIN
        )),
        "{short:?}"
    );
}

/// Nobody who waits for a lease of a day waits for an hour because its release has failed once.
#[test]
fn tries_are_repeated_within_ten_seconds_however_long_the_ttl() {
    for (ttl_ms, retry_ms) in [
        (30_000, 1_000),
        (300_000, 10_000),
        (301_000, 10_000),
        (86_400_000, 10_000),
    ] {
        let timing = TimingOptions::new(milliseconds(ttl_ms)).check().unwrap();
        assert_eq!(timing.retry_every(), milliseconds(retry_ms), "{ttl_ms}");
    }
}

#[test]
fn the_controller_preset_keeps_what_it_states() {
    let controller = Timing::controller();
    assert_eq!(controller.retry_every(), milliseconds(1_000));
    assert_eq!(controller.request_timeout(), milliseconds(3_000));
}

#[test]
fn the_advised_ttl_is_thirty_round_trips_up_to_whole_hundreds() {
    for (round_trip, ttl_ms) in [
        (milliseconds(1), 1_000),
        (milliseconds(50), 1_500),
        (Duration::from_micros(50_100), 1_600),
        (Duration::from_secs(60), 1_800_000),
        (Duration::from_secs(86_400), 86_400_000),
        (Duration::MAX, 86_400_000),
    ] {
        assert_eq!(
            Timing::advised(round_trip).ttl().as_millis(),
            ttl_ms,
            "{round_trip:?}"
        );
    }
}

#[test]
fn the_worst_take_over_is_the_ttl_its_margin_the_spread_and_one_request() {
    // 30 s, 50 ms for steps of clocks, 30.015 ms for their rates, 150 ms of spread, 3 s for a request.
    assert_eq!(
        Timing::batch().explain().takeover_after_crash,
        milliseconds(30_000 + 50 + 150 + 3_000) + Duration::from_nanos(30_015_008)
    );
}

#[test]
fn a_standby_looks_once_in_a_ttl_where_the_renewals_divide_it_and_sooner_where_not() {
    let looks = |renew_ms| {
        let options = TimingOptions {
            renew_every: Some(milliseconds(renew_ms)),
            ..options()
        };
        options.check().unwrap().explain().standby_requests_per_minute
    };
    assert_eq!(looks(2_500), 6);
    // 9 ms short of the ttl after three renewals: as good as dividing it. 10 ms short: not.
    assert_eq!(looks(3_331), 6);
    // Every 6.67 s.
    assert_eq!(looks(3_330), 9);
}

#[test]
fn a_timing_tells_the_errors_of_clocks_that_it_allows_for() {
    let timing = TimingOptions {
        clock_rate_error_ppm: 700,
        step_allowance: Some(milliseconds(33)),
        ..options()
    };
    let timing = timing.check().unwrap();
    assert_eq!(timing.clock_rate_error_ppm(), 700);
    assert_eq!(timing.step_allowance(), milliseconds(33));
}
