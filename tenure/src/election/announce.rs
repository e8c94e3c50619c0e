//! What an operator reads: one line of log for each thing that happens to a lease.

// Where this file is compiled a second time, for the scheduler of tenure/verify, there is no such feature,
// and no documentation.
#[cfg(all(test, feature = "metrics"))]
mod documentation;

use crate::driver::{exact_milliseconds, milliseconds};
use std::time::Duration;
use tenure_core::{Cause, Departure, End, Event, FencingToken, Grant, LeaseName, Released, StoreError};

/// Writes an event of an election's engine to `tracing`, target `tenure`.
pub(super) fn announce(candidate: &str, event: &Event) {
    match event {
        Event::Standby { lease, twin } => {
            let name = &lease.name;
            tracing::info!(target: "tenure", lease = %name, candidate, holder = %lease.holder,
                token = lease.token.number(),
                    remaining_ms = milliseconds(lease.remaining), "Standby");
            if *twin {
                tracing::warn!(target: "tenure", lease = %name, candidate, holder = %lease.holder,
                        "Another process has this candidate's id, or had it when it was killed; give each that lives its own");
            }
        }
        Event::AttemptFailed {
            name,
            error,
            retry_in,
        } => {
            tracing::warn!(target: "tenure", lease = %name, candidate, %error,
                retry_in_ms = milliseconds(*retry_in), "Attempt failed");
        }
        Event::CampaignEnded { name, error } => {
            tracing::error!(target: "tenure", lease = %name, candidate, %error, "Campaign ended");
        }
        Event::Withdrawn { name } => {
            tracing::debug!(target: "tenure", lease = %name, candidate, "Campaign withdrawn");
        }
        Event::Acquired {
            name,
            grant,
            round_trip,
            ..
        } => {
            announce_beginning(candidate, name, grant, *round_trip);
        }
        Event::Renewed {
            name,
            token,
            round_trip,
            slack,
            ..
        } => {
            tracing::debug!(target: "tenure", lease = %name, candidate, token = token.number(),
                round_trip_ms = exact_milliseconds(*round_trip), slack_ms = milliseconds(*slack), "Lease renewed");
        }
        Event::RenewalFailed {
            name,
            token,
            error,
            remaining,
        } => {
            tracing::warn!(target: "tenure", lease = %name, candidate, token = token.number(), %error,
                remaining_ms = milliseconds(*remaining), "Renewal failed");
        }
        Event::Doubted {
            name,
            token,
            remaining,
        } => {
            tracing::warn!(target: "tenure", lease = %name, candidate, token = token.number(),
                remaining_ms = milliseconds(*remaining), "Leadership doubtful");
        }
        Event::Reassured { name, token } => {
            tracing::info!(target: "tenure", lease = %name, candidate, token = token.number(), "Leadership reassured");
        }
        Event::Stuck {
            name,
            token,
            idle_for,
        } => {
            tracing::error!(target: "tenure", lease = %name, candidate, token = token.number(),
                idle_for_ms = milliseconds(*idle_for),
                    "No progress; renewals stopped");
        }
        Event::AskedToStepDown { name, token } => {
            tracing::info!(target: "tenure", lease = %name, candidate, token = token.number(), "Asked to step down");
        }
        Event::Ended { name, token, cause } => announce_end(candidate, name, *token, cause),
        Event::ReleaseFailed {
            name,
            token,
            error,
            remaining,
        } => announce_failed_release(candidate, name, *token, error, *remaining),
        Event::Departed {
            name,
            token,
            departure,
        } => announce_departure(candidate, name, *token, departure),
    }
}

fn announce_beginning(candidate: &str, name: &LeaseName, grant: &Grant, round_trip: Duration) {
    tracing::info!(target: "tenure", lease = %name, candidate, token = grant.token.number(), terms = grant.terms,
        ttl_ms = grant.ttl.as_millis(), round_trip_ms = exact_milliseconds(round_trip), "Leadership acquired");
    if let Some(before) = &grant.predecessor
        && before.end == End::Expired
    {
        tracing::warn!(target: "tenure", lease = %name, from = %before.candidate, to = candidate,
            from_token = before.token.number(), token = grant.token.number(),
            vacant_for_ms = milliseconds(before.vacant_for), "Failover detected");
    }
}

/// Not louder: the next try may succeed.
fn announce_failed_release(
    candidate: &str,
    name: &LeaseName,
    token: FencingToken,
    error: &StoreError,
    remaining: Duration,
) {
    tracing::debug!(target: "tenure", lease = %name, candidate, token = token.number(), %error,
        fault = error.fault.word(), remaining_ms = milliseconds(remaining), "Release failed");
}

fn announce_departure(candidate: &str, name: &LeaseName, token: FencingToken, departure: &Departure) {
    match departure {
        Departure::Answered(Released::Vacated) => {
            tracing::debug!(target: "tenure", lease = %name, candidate, token = token.number(), "Lease released");
        }
        Departure::Answered(Released::NotYours(_)) => {
            tracing::debug!(target: "tenure", lease = %name, candidate, token = token.number(),
                "Lease was over before its release");
        }
        Departure::Unconfirmed { error, remaining } => {
            tracing::warn!(target: "tenure", lease = %name, candidate, token = token.number(), %error,
                fault = error.fault.word(), remaining_ms = milliseconds(*remaining), "Release unconfirmed");
        }
    }
}

fn announce_end(candidate: &str, name: &LeaseName, token: FencingToken, cause: &Cause) {
    match cause {
        Cause::GivenBack => {
            tracing::info!(target: "tenure", lease = %name, candidate, token = token.number(), "Leadership given back");
        }
        Cause::Succeeded { token: theirs, by } => {
            let by = by.as_ref().map(ToString::to_string);
            tracing::error!(target: "tenure", lease = %name, candidate, token = token.number(), cause = cause.word(),
                successor = theirs.number(),
                by, "Leadership lost");
        }
        Cause::Vanished => {
            tracing::error!(target: "tenure", lease = %name, candidate, token = token.number(),
                cause = cause.word(),
                "Leadership lost");
        }
        Cause::Deadline(error) => {
            let error = error.as_ref().map(ToString::to_string);
            tracing::error!(target: "tenure", lease = %name, candidate, token = token.number(), cause = cause.word(),
                error, "Lease expired");
        }
        Cause::NoProgress(idle_for) => {
            tracing::error!(target: "tenure", lease = %name, candidate, token = token.number(), cause = cause.word(),
                idle_for_ms = milliseconds(*idle_for),
                "Lease expired");
        }
        Cause::MaxHold(max_hold) => {
            tracing::error!(target: "tenure", lease = %name, candidate, token = token.number(),
                cause = cause.word(), max_hold_ms = milliseconds(*max_hold),
                "Lease expired");
        }
    }
}
