//! What an operator reads of a place in a queue: a store that fails and ids that are shared. It is nobody's lock, so that its loss is
//! none.

use tenure_core::{Cause, Departure, Event};

/// As [`announce`](super::announce::announce), of the lease by which a process waits for a lock in order.
pub(crate) fn announce_place(candidate: &str, event: &Event) {
    match event {
        Event::Standby { lease, twin } => {
            let (place, holder) = (&lease.name, &lease.holder);
            if *twin {
                tracing::warn!(target: "tenure", %place, candidate, %holder,
                    "Another process has this candidate's id; give each its own");
            } else {
                tracing::debug!(target: "tenure", %place, candidate, %holder, "Place not free yet");
            }
        }
        Event::AttemptFailed {
            name,
            error,
            retry_in,
        } => {
            tracing::warn!(target: "tenure", place = %name, candidate, %error, ?retry_in, "Attempt failed");
        }
        Event::CampaignEnded { name, error } => {
            tracing::error!(target: "tenure", place = %name, candidate, %error, "No place");
        }
        Event::Acquired { name, grant, .. } => {
            let token = &grant.token;
            tracing::debug!(target: "tenure", place = %name, candidate, %token, "In the queue");
        }
        Event::RenewalFailed {
            name,
            token,
            error,
            remaining,
        } => {
            tracing::warn!(target: "tenure", place = %name, candidate, %token, %error, ?remaining, "Not extended");
        }
        Event::Stuck {
            name,
            token,
            idle_for,
        } => {
            tracing::warn!(target: "tenure", place = %name, candidate, %token, ?idle_for,
                "No progress; extended no more");
        }
        Event::AskedToStepDown { name, token } => {
            tracing::info!(target: "tenure", place = %name, candidate, %token, "Called to the front");
        }
        Event::Ended { name, token, cause } if *cause != Cause::GivenBack => {
            tracing::warn!(target: "tenure", place = %name, candidate, %token, ?cause, "Place lost");
        }
        Event::Departed {
            name,
            token,
            departure: Departure::Unconfirmed(error),
        } => {
            tracing::warn!(target: "tenure", place = %name, candidate, %token, %error, "Release unconfirmed");
        }
        Event::Withdrawn { .. }
        | Event::Renewed { .. }
        | Event::Doubted { .. }
        | Event::Reassured { .. }
        | Event::Ended { .. }
        | Event::Departed { .. } => {}
    }
}
