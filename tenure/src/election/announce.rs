//! What an operator reads: one line of log for each thing that happens to a lease.

// Where this file is compiled a second time, for the scheduler of tenure/verify, there is no such feature, and no documentation.
#[cfg(all(test, feature = "metrics"))]
mod documentation;

use tenure_core::{Cause, Departure, End, Event, Released};

/// Writes an event of an election's engine to `tracing`, target `tenure`.
pub(super) fn announce(candidate: &str, event: &Event) {
    match event {
        Event::Standby { lease, twin } => {
            let (name, remaining) = (&lease.name, lease.remaining);
            tracing::info!(target: "tenure", lease = %name, candidate, holder = %lease.holder, token = %lease.token,
                    ?remaining, "Standby");
            if *twin {
                tracing::warn!(target: "tenure", lease = %name, candidate, holder = %lease.holder,
                        "Another process has this candidate's id; give each its own");
            }
        }
        Event::AttemptFailed {
            name,
            error,
            retry_in,
        } => {
            tracing::warn!(target: "tenure", lease = %name, candidate, %error, ?retry_in, "Attempt failed");
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
            tracing::info!(target: "tenure", lease = %name, candidate, token = %grant.token, terms = grant.terms,
                    ttl = %grant.ttl, ?round_trip, "Leadership acquired");
            if let Some(before) = &grant.predecessor
                && before.end == End::Expired
            {
                tracing::warn!(target: "tenure", lease = %name, from = %before.candidate, to = candidate,
                        from_token = %before.token, token = %grant.token, vacant_for = ?before.vacant_for,
                        "Failover detected");
            }
        }
        Event::Renewed {
            name,
            token,
            round_trip,
            slack,
            ..
        } => {
            tracing::debug!(target: "tenure", lease = %name, candidate, %token, ?round_trip, ?slack, "Lease renewed");
        }
        Event::RenewalFailed {
            name,
            token,
            error,
            remaining,
        } => {
            tracing::warn!(target: "tenure", lease = %name, candidate, %token, %error, ?remaining, "Renewal failed");
        }
        Event::Doubted {
            name,
            token,
            remaining,
        } => {
            tracing::warn!(target: "tenure", lease = %name, candidate, %token, ?remaining, "Leadership doubtful");
        }
        Event::Reassured { name, token } => {
            tracing::info!(target: "tenure", lease = %name, candidate, %token, "Leadership reassured");
        }
        Event::Stuck {
            name,
            token,
            idle_for,
        } => {
            tracing::error!(target: "tenure", lease = %name, candidate, %token, ?idle_for,
                    "No progress; renewals stopped");
        }
        Event::AskedToStepDown { name, token } => {
            tracing::info!(target: "tenure", lease = %name, candidate, %token, "Asked to step down");
        }
        Event::Ended { name, token, cause } => announce_end(candidate, name, *token, cause),
        Event::Departed {
            name,
            token,
            departure,
        } => announce_departure(candidate, name, *token, departure),
    }
}

fn announce_departure(
    candidate: &str,
    name: &tenure_core::LeaseName,
    token: tenure_core::FencingToken,
    departure: &Departure,
) {
    match departure {
        Departure::Answered(Released::Vacated) => {
            tracing::debug!(target: "tenure", lease = %name, candidate, %token, "Lease released");
        }
        Departure::Answered(Released::NotYours(_)) => {
            tracing::debug!(target: "tenure", lease = %name, candidate, %token, "Lease was over before its release");
        }
        Departure::Unconfirmed(error) => {
            tracing::warn!(target: "tenure", lease = %name, candidate, %token, %error, "Release unconfirmed");
        }
    }
}

fn announce_end(
    candidate: &str,
    name: &tenure_core::LeaseName,
    token: tenure_core::FencingToken,
    cause: &Cause,
) {
    match cause {
        Cause::GivenBack => {
            tracing::info!(target: "tenure", lease = %name, candidate, %token, "Leadership given back");
        }
        Cause::Succeeded { token: theirs, by } => {
            let by = by.as_ref().map(ToString::to_string);
            tracing::error!(target: "tenure", lease = %name, candidate, %token, cause = "succeeded", successor = %theirs,
                by, "Leadership lost");
        }
        Cause::Vanished => {
            tracing::error!(target: "tenure", lease = %name, candidate, %token, cause = "expired or broken in the store",
                "Leadership lost");
        }
        Cause::Deadline(error) => {
            let error = error.as_ref().map(ToString::to_string);
            tracing::error!(target: "tenure", lease = %name, candidate, %token, cause = "deadline", error, "Lease expired");
        }
        Cause::NoProgress(idle_for) => {
            tracing::error!(target: "tenure", lease = %name, candidate, %token, cause = "no progress", ?idle_for,
                "Lease expired");
        }
        Cause::MaxHold(max_hold) => {
            tracing::error!(target: "tenure", lease = %name, candidate, %token, cause = "longest hold", ?max_hold,
                "Lease expired");
        }
    }
}
