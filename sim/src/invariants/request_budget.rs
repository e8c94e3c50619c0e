//! An idle standby asks at most once per ttl, a leader once per renewal.

use super::{Assumes, Law, Verdict, hold};
use std::time::Duration;

pub(super) const LAW: Law = Law {
    name: "few-requests",
    guarantee: "G18",
    source: "I14",
    assumes: Assumes::RateStepStore,
};

/// What a process is while its requests are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It leads.
    Leader,
    /// It waits.
    Standby,
}

/// Requests more than the interval says that fit into a time which begins and ends anywhere.
const ENDS: u64 = 2;

/// Whether a process sent at most one request in each `interval` of a fault-free time, give or take its ends.
///
/// # Errors
/// [`Breach`](super::Breach) if it sent more.
pub fn request_budget(role: Role, sent: u64, during: Duration, interval: Duration) -> Verdict {
    let intervals = during.as_nanos() / interval.as_nanos().max(1);
    hold(&LAW, u128::from(sent) <= intervals + u128::from(ENDS), || {
        format!("a {role:?} sent {sent} requests in {during:?}, more than one in {interval:?}")
    })
}
