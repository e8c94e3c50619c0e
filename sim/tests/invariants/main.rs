//! Every law is broken once by hand, and says so; and is silent about what is sound.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod attempts;
mod belief;
mod endings;
mod hints;
mod records;
mod retries;

use std::time::Duration;
use tenure_core::{Attempt, FencingToken, Lease};
use tenure_core::{Candidate, CandidateId, Cause, Fault, Incarnation, LeaseName, Note, StoreError, Ttl};
use tenure_sim::invariants::*;
use tenure_sim::plan::Assumptions;

/// Fails unless this verdict is a breach of the law with this name.
fn broken(verdict: Verdict, law: &str) {
    let breach = verdict.expect_err("a breach");
    assert_eq!(breach.law.name, law);
    assert!(!breach.what.is_empty());
}

fn sound(verdict: Verdict) {
    assert_eq!(verdict, Ok(()));
}

fn truth(holder: u64, token: u64, attempt: u64, expires_ms: u64) -> Truth {
    let released = false;
    Truth {
        holder,
        token,
        attempt,
        expires_ms,
        released,
    }
}

fn believed(token: u64, until: u64) -> Believed {
    Believed {
        token,
        until_local: until,
        until_real: until,
    }
}

#[test]
fn every_law_has_a_name_of_its_own_and_a_guarantee() {
    for (place, law) in LAWS.iter().enumerate() {
        assert!(law.guarantee.starts_with('G'), "{law:?}");
        assert!(law.source.starts_with('I'), "{law:?}");
        assert!(
            LAWS[..place].iter().all(|other| other.name != law.name),
            "{law:?}"
        );
    }
}

#[test]
fn laws_apply_only_where_their_assumptions_hold() {
    let all = Assumptions {
        rate: true,
        step: true,
        store: true,
    };
    assert!(Assumes::RateStepStore.holds(all));
    for broken in [
        Assumptions { rate: false, ..all },
        Assumptions { step: false, ..all },
        Assumptions { store: false, ..all },
    ] {
        assert!(!Assumes::RateStepStore.holds(broken));
        assert!(Assumes::Nothing.holds(broken));
        assert!(Assumes::StoreOrClock.holds(broken));
        assert_eq!(Assumes::Store.holds(broken), broken.store);
    }
}
