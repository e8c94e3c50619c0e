//! What an operator reads of a place in a queue: a store that fails and ids that are shared. It is nobody's
//! lock, so that its loss is none.

use crate::driver::milliseconds;
use std::time::Duration;
use tenure_core::{Cause, Departure, Event, LeaseName, StoreError};

/// As [`announce`](super::announce::announce), of the lease by which a process waits for a lock in order.
pub(crate) fn announce_place(candidate: &str, event: &Event) {
    match event {
        Event::Standby { lease, twin } => {
            let (place, holder) = (&lease.name, &lease.holder);
            if *twin {
                tracing::warn!(target: "tenure", %place, candidate, %holder,
                    "Another process has this candidate's id, or had it when it was killed; give each that lives its own");
            } else {
                tracing::debug!(target: "tenure", %place, candidate, %holder, "Somebody's own lease has the name of the place");
            }
        }
        Event::AttemptFailed {
            name,
            error,
            retry_in,
        } => {
            tracing::warn!(target: "tenure", place = %name, candidate, %error,
                retry_in_ms = milliseconds(*retry_in), "Attempt failed");
        }
        Event::CampaignEnded { name, error } => {
            tracing::error!(target: "tenure", place = %name, candidate, %error, "No place");
        }
        Event::Acquired { name, grant, .. } => {
            let token = &grant.token;
            tracing::debug!(target: "tenure", place = %name, candidate, token = token.number(), "In the queue");
        }
        Event::RenewalFailed {
            name,
            token,
            error,
            remaining,
        } => {
            tracing::warn!(target: "tenure", place = %name, candidate, token = token.number(), %error,
                remaining_ms = milliseconds(*remaining), "Not extended");
        }
        Event::Stuck {
            name,
            token,
            idle_for,
        } => {
            tracing::warn!(target: "tenure", place = %name, candidate, token = token.number(),
                idle_for_ms = milliseconds(*idle_for),
                "No progress; extended no more");
        }
        Event::AskedToStepDown { name, token } => {
            tracing::info!(target: "tenure", place = %name, candidate, token = token.number(), "Called to the front");
        }
        Event::Ended { name, token, cause } if *cause != Cause::GivenBack => {
            tracing::warn!(target: "tenure", place = %name, candidate, token = token.number(), cause = cause.word(),
                why = %cause, "Place lost");
        }
        Event::ReleaseFailed {
            name,
            token,
            error,
            remaining,
        } => {
            tracing::debug!(target: "tenure", place = %name, candidate, token = token.number(), %error,
                fault = error.fault.word(), remaining_ms = milliseconds(*remaining), "Release failed");
        }
        Event::Departed {
            name,
            token,
            departure: Departure::Unconfirmed { error, remaining },
        } => {
            tracing::warn!(target: "tenure", place = %name, candidate, token = token.number(), %error,
                fault = error.fault.word(), remaining_ms = milliseconds(*remaining), "Release unconfirmed");
        }
        Event::Withdrawn { .. }
        | Event::Renewed { .. }
        | Event::Doubted { .. }
        | Event::Reassured { .. }
        | Event::Ended { .. }
        | Event::Departed { .. } => {}
    }
}

/// That nobody knows who is before a place. Once for each kind of fault: it is looked at again and again.
pub(crate) fn announce_unread(candidate: &str, place: &LeaseName, error: &StoreError, retry_in: Duration) {
    tracing::warn!(target: "tenure", %place, candidate, %error, retry_in_ms = milliseconds(retry_in), "Queue not read");
}
