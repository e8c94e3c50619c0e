//! What an operator reads: losses and trouble as they come; each lock taken and released only on demand,
//! since there may be thousands a second.

use crate::driver::milliseconds;
use tenure_core::{Cause, Departure, End, Event, Released};

/// Writes an event of a lock manager's engine to `tracing`, target `tenure`.
pub(crate) fn announce(candidate: &str, event: &Event) {
    match event {
        Event::Standby { lease, .. } => {
            let (name, holder, token) = (&lease.name, &lease.holder, &lease.token);
            tracing::debug!(target: "tenure", lock = %name, candidate, %holder, token = token.number(), "Waiting");
        }
        Event::AttemptFailed {
            name,
            error,
            retry_in,
        } => {
            tracing::warn!(target: "tenure", lock = %name, candidate, %error,
                retry_in_ms = milliseconds(*retry_in), "Attempt failed");
        }
        Event::CampaignEnded { name, error } => {
            tracing::error!(target: "tenure", lock = %name, candidate, %error, "Not locked");
        }
        Event::Withdrawn { name } => tracing::debug!(target: "tenure", lock = %name, candidate, "Withdrawn"),
        Event::Acquired { name, grant, .. } => {
            let token = &grant.token;
            tracing::debug!(target: "tenure", lock = %name, candidate, token = token.number(), "Locked");
            if let Some(before) = &grant.predecessor
                && before.end == End::Expired
            {
                tracing::warn!(target: "tenure", lock = %name, from = %before.candidate, to = candidate,
                    from_token = before.token.number(), token = token.number(),
                    vacant_for_ms = milliseconds(before.vacant_for), "Taken over");
            }
        }
        // Nobody tells of progress with a lock.
        Event::Renewed { .. } | Event::Stuck { .. } => {}
        Event::RenewalFailed {
            name,
            token,
            error,
            remaining,
        } => {
            tracing::warn!(target: "tenure", lock = %name, candidate, token = token.number(), %error,
                remaining_ms = milliseconds(*remaining), "Not extended");
        }
        Event::Doubted {
            name,
            token,
            remaining,
        } => {
            tracing::warn!(target: "tenure", lock = %name, candidate, token = token.number(),
                remaining_ms = milliseconds(*remaining), "Lock doubtful");
        }
        Event::Reassured { name, token } => {
            tracing::info!(target: "tenure", lock = %name, candidate, token = token.number(), "Lock reassured");
        }
        Event::AskedToStepDown { name, token } => {
            tracing::info!(target: "tenure", lock = %name, candidate, token = token.number(), "Asked to release");
        }
        Event::Ended { name, token, cause } => announce_end(candidate, name, *token, cause),
        Event::ReleaseFailed {
            name,
            token,
            error,
            remaining,
        } => {
            tracing::debug!(target: "tenure", lock = %name, candidate, token = token.number(), %error,
                fault = error.fault.word(), remaining_ms = milliseconds(*remaining), "Release failed");
        }
        Event::Departed {
            name,
            token,
            departure,
        } => match departure {
            Departure::Answered(Released::Vacated) => {
                tracing::debug!(target: "tenure", lock = %name, candidate, token = token.number(), "Released");
            }
            Departure::Answered(Released::NotYours(_)) => {
                tracing::debug!(target: "tenure", lock = %name, candidate, token = token.number(),
                    "Was over before its release");
            }
            Departure::Unconfirmed { error, remaining } => {
                tracing::warn!(target: "tenure", lock = %name, candidate, token = token.number(), %error,
                    fault = error.fault.word(), remaining_ms = milliseconds(*remaining), "Release unconfirmed");
            }
        },
    }
}

fn announce_end(
    candidate: &str,
    name: &tenure_core::LeaseName,
    token: tenure_core::FencingToken,
    cause: &Cause,
) {
    if *cause != Cause::GivenBack {
        tracing::error!(target: "tenure", lock = %name, candidate, token = token.number(), cause = cause.word(),
            why = %cause, "Lock lost");
    }
}
