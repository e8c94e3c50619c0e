//! `tenure explain`.

use crate::arguments::{ExplainArguments, Form};
use crate::exit::{Code, Failure};
use crate::output::{self, Voice, in_json};
use clap::ArgMatches;
use serde_json::{Value, json};
use tenure::{Timing, TimingError};

/// Says what a timing promises, or all that is wrong with it.
pub(crate) fn explain(
    arguments: &ExplainArguments,
    matches: &ArgMatches,
    form: Form,
    voice: Voice,
) -> Result<u8, Failure> {
    match (arguments.timing(matches)?, form) {
        (Ok(timing), Form::Text) => output::print(&format!("{}\n", timing.explain()))?,
        (Ok(timing), Form::Json) => output::print(&format!("{}\n", json_of(&timing)))?,
        (Err(error), Form::Json) => {
            let violations = error.0.iter().map(ToString::to_string);
            let violations: Vec<String> = violations.collect();
            voice.fail_with(&Failure::from(error), json!({ "violations": violations }));
            return Ok(Code::Configuration.number());
        }
        (Err(error), Form::Text) => {
            for violation in error.0 {
                voice.fail(&Failure::from(TimingError(vec![violation])));
            }
            return Ok(Code::Configuration.number());
        }
    }
    Ok(0)
}

/// A timing and its promises, for programs.
pub(crate) fn json_of(timing: &Timing) -> Value {
    let promises = timing.explain();
    json!({
        "ttl_ms": timing.ttl().as_millis(),
        "renew_every_ms": in_json(timing.renew_every()),
        "retry_every_ms": in_json(timing.retry_every()),
        "request_timeout_ms": in_json(timing.request_timeout()),
        "grace_ms": in_json(timing.grace()),
        "spread_ms": in_json(timing.spread()),
        "trust_ms": in_json(timing.trust(timing.ttl())),
        "outage_unnoticed_ms": in_json(promises.outage_unnoticed),
        "outage_survived_ms": in_json(promises.outage_survived),
        "clock_rate_error_ppm": promises.clock_rate_error_ppm,
        "takeover_after_crash_ms": in_json(promises.takeover_after_crash),
        "hand_over_ms": in_json(promises.hand_over),
        "leader_requests_per_minute": promises.leader_requests_per_minute,
        "standby_requests_per_minute": promises.standby_requests_per_minute,
    })
}
