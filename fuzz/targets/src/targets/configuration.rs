//! Timings, durations, names, tokens: what people write.

use super::choices::Choices;
use super::text::assert_one_line;
use crate::Target;
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::{
    CandidateId, FencingToken, Incarnation, LeaseName, Moment, Note, ResourceName, Timing, TimingOptions,
    Ttl, Violation,
};

/// This target.
pub const TARGET: Target = Target {
    name: "configuration",
    promise: "an accepted timing obeys its inequalities, a refused one lists all it breaks; texts round trip",
    judge,
    dictionary: &[
        "1ms",
        "30s",
        "1m 30s",
        "500ms",
        "24h",
        "1year",
        "18446744073709551615ns",
        "9223372036854775807",
        "253402300799999",
        "253402300800000",
        "0",
        "-1",
        "+1",
        "job/a",
        "..",
        "/",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "0123456789abcdef0123456789abcdef",
    ],
};

const MILLION: u128 = 1_000_000;

/// Highest clock-rate error that is taken, in parts per million.
const RATE_ERROR_MAX_PPM: u32 = 100_000;

fn judge(input: &[u8]) {
    let mut choices = Choices::new(input);
    match choices.byte() % 4 {
        0 => words(&String::from_utf8_lossy(choices.rest())),
        1 => written_duration(&String::from_utf8_lossy(choices.rest())),
        2 => numbers(&mut choices),
        _ => {
            let options = options(&mut choices);
            timing(&options);
        }
    }
}

fn words(text: &str) {
    let parts_are_named = text
        .split('/')
        .all(|part| !part.is_empty() && part != "." && part != "..");
    let plain = parts_are_named && text.trim() == text && !text.contains(char::is_control);
    assert_eq!(
        LeaseName::new(text).is_ok(),
        plain && text.len() <= 255,
        "{text:?}"
    );
    assert_eq!(
        ResourceName::new(text).is_ok(),
        plain && text.len() <= 255,
        "{text:?}"
    );
    assert_eq!(
        CandidateId::new(text).is_ok(),
        plain && text.len() <= 253,
        "{text:?}"
    );
    match text.parse::<LeaseName>() {
        Ok(name) => assert_eq!(name.to_string(), text),
        Err(error) => assert_one_line(&error.to_string()),
    }
    match text.parse::<CandidateId>() {
        Ok(id) => assert_eq!(id.as_str(), text),
        Err(error) => assert_one_line(&error.to_string()),
    }
    match Note::new(text) {
        Ok(note) => assert!(note.as_str() == text && text.len() <= 1024),
        Err(error) => {
            assert!(text.len() > 1024);
            assert_one_line(&error.to_string());
        }
    }
    if let Ok(token) = text.parse::<FencingToken>() {
        assert_eq!(token.to_string().parse(), Ok(token));
        assert_eq!(FencingToken::from_signed(token.signed()), Ok(token));
    }
    if let Ok(incarnation) = text.parse::<Incarnation>() {
        assert_eq!(incarnation.to_string(), text);
    }
}

/// The command reads its durations with `humantime` and gives them to the timing.
fn written_duration(text: &str) {
    match humantime::parse_duration(text) {
        Ok(duration) => {
            let shown = humantime::format_duration(duration).to_string();
            assert_eq!(humantime::parse_duration(&shown), Ok(duration), "{shown:?}");
            timing(&TimingOptions::new(duration));
            let _ = Timing::advised(duration);
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

fn numbers(choices: &mut Choices<'_>) {
    let (first, second) = (choices.number(), choices.number());
    let token = FencingToken::new(first).ok();
    assert_eq!(token.is_some(), (1..=FencingToken::MAX.number()).contains(&first));
    if let Some(next) = FencingToken::successor(token, second) {
        assert!(token.is_none_or(|token| next > token) && next.number() >= second);
    } else {
        let used_up = |number: u64| number >= FencingToken::MAX.number();
        assert!(
            used_up(first) || used_up(second),
            "no token after {first} at {second}"
        );
    }
    let given = duration(choices);
    if let Ok(ttl) = Ttl::try_from(given) {
        assert!(ttl.duration() <= given && given - ttl.duration() < Duration::from_millis(1));
        assert!((Ttl::MIN..=Ttl::MAX).contains(&ttl));
        assert_eq!(Ttl::from_millis(ttl.as_millis()), Ok(ttl));
    }
    let at = Moment::from_nanos(first);
    let nanoseconds = u128::from(first) + given.as_nanos();
    assert_eq!(
        u128::from(at.after(given).as_nanos()),
        nanoseconds.min(u64::MAX.into())
    );
    assert_eq!(
        u128::from(at.before(given).as_nanos()),
        u128::from(first).saturating_sub(given.as_nanos())
    );
    assert!(at.after(given).since(at) <= given);
}

fn duration(choices: &mut Choices<'_>) -> Duration {
    match choices.byte() % 6 {
        0 | 1 => Duration::from_millis(choices.number() % 100_000_000),
        2 => Duration::from_nanos(choices.number()),
        3 => Duration::from_secs(choices.number()),
        4 => Duration::MAX,
        _ => Duration::from_millis(choices.byte().into()),
    }
}

/// Options that are near the edge: most parts left to the ttl, or a part of it.
fn options(choices: &mut Choices<'_>) -> TimingOptions {
    let ttl = duration(choices);
    let mut part = || match choices.byte() % 4 {
        0 | 1 => None,
        2 => Some(ttl / (1 + u32::from(choices.byte()))),
        _ => Some(duration(choices)),
    };
    let (renew_every, retry_every, request_timeout) = (part(), part(), part());
    let (grace, spread, step_allowance) = (part(), part(), part());
    TimingOptions {
        ttl,
        renew_every,
        retry_every,
        request_timeout,
        grace,
        spread,
        clock_rate_error_ppm: match choices.byte() % 4 {
            0 => 500,
            1 => RATE_ERROR_MAX_PPM,
            2 => (choices.number() % 200_000) as u32,
            _ => choices.number() as u32,
        },
        step_allowance,
    }
}

fn timing(options: &TimingOptions) {
    let broken = broken(options);
    match options.check() {
        Err(error) => {
            let listed: Vec<&str> = error.0.iter().map(label).collect();
            assert_eq!(
                listed.iter().copied().collect::<BTreeSet<_>>(),
                broken,
                "{options:?}"
            );
            assert_eq!(listed.len(), broken.len(), "listed twice: {listed:?}");
            assert_one_line(&error.to_string());
        }
        Ok(timing) => {
            assert_eq!(broken, BTreeSet::new(), "{options:?} is taken");
            promises(&timing);
        }
    }
}

fn label(violation: &Violation) -> &'static str {
    match violation {
        Violation::TtlOutOfRange(_) => "ttl",
        Violation::OutsideStoreRange { .. } => "store",
        Violation::TooShort { what, .. } => what,
        Violation::RetryInterval { .. } => "retry",
        Violation::RenewalNotWithinTtl { .. } => "renewal",
        Violation::OneLostRenewalLosesTheLease { .. } => "lost renewal",
        Violation::DoubtBeforeTheFirstRenewal { .. } => "doubt",
        Violation::SpreadTooWide { .. } => "spread",
        Violation::ClockRateError { .. } => "rate",
        _ => "one that this file does not know",
    }
}

/// The inequalities that these options break, by this file's own arithmetic, in nanoseconds that cannot
/// overflow. An impossible ttl or rate error counts as the nearest possible one for the others.
fn broken(options: &TimingOptions) -> BTreeSet<&'static str> {
    let mut broken = BTreeSet::new();
    let mut claim = |label, holds: bool| {
        if !holds {
            broken.insert(label);
        }
    };
    let given_ms = options.ttl.as_millis();
    let ttl_ms = given_ms.clamp(100, 86_400_000);
    let ttl = ttl_ms * MILLION;
    let or = |given: Option<Duration>, default: u128| given.map_or(default, |given| given.as_nanos());
    let renew = or(options.renew_every, ttl / 3);
    let retry_default = (ttl / 30)
        .min(10_000 * MILLION)
        .min(or(options.renew_every, u128::MAX))
        .max(MILLION);
    let retry = or(options.retry_every, retry_default);
    let request = or(options.request_timeout, ttl / 10);
    let grace = or(options.grace, ttl / 6);
    let spread = or(options.spread, (ttl / 40).min(150 * MILLION));
    let step = or(options.step_allowance, (ttl / 50).min(50 * MILLION));
    let ppm = u128::from(options.clock_rate_error_ppm.min(RATE_ERROR_MAX_PPM));
    let trust = ttl
        .saturating_sub((ttl * 2 * ppm).div_ceil(MILLION))
        .saturating_sub(step);
    claim("ttl", given_ms == ttl_ms);
    claim("rate", options.clock_rate_error_ppm <= RATE_ERROR_MAX_PPM);
    claim("renewal interval", renew >= MILLION);
    claim("request time-out", request >= MILLION);
    claim("retry", (MILLION..=renew).contains(&retry));
    claim("renewal", renew < ttl);
    // A renewal that is not within the ttl is told once.
    claim("lost renewal", renew >= ttl || 2 * renew + request <= trust);
    claim("doubt", renew + request + grace <= trust);
    claim("spread", spread <= ttl / 4);
    broken
}

fn promises(timing: &Timing) {
    let promises = timing.explain();
    let ttl = timing.ttl().duration();
    let trust = timing.trust(timing.ttl());
    assert!(promises.outage_unnoticed <= promises.outage_survived);
    assert!(
        promises.outage_survived + timing.renew_every() <= trust,
        "survives longer than it trusts"
    );
    assert!(promises.takeover_after_crash >= ttl + timing.request_timeout());
    assert!(promises.leader_requests_per_minute >= 1 && promises.standby_requests_per_minute >= 1);
    for line in promises.to_string().lines() {
        assert_one_line(line);
    }
    for granted in [Ttl::MIN, timing.ttl(), Ttl::MAX] {
        assert!(timing.trust(granted) <= granted.duration());
    }
}
