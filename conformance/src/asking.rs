//! Requests as tests write them: short, and valid without a word about it. Each panics on what a test has wrong.

use std::hash::{BuildHasher, Hasher, RandomState};
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, FencingToken, Grant, Incarnation, LeaseName,
    LeaseStore, Note, Release, Renew, Ttl,
};

/// Bits that no other test has.
#[must_use]
pub fn random_bits() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A lease's name.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn name(text: &str) -> LeaseName {
    LeaseName::new(text).expect("a test gives a valid name")
}

/// A ttl in seconds.
///
/// # Panics
/// If it is out of range.
#[must_use]
pub fn seconds(seconds: u64) -> Ttl {
    Ttl::from_secs(seconds).expect("a test gives a valid ttl")
}

/// A new process that asks by its first attempt.
///
/// # Panics
/// If `lease` or `label` is no valid name.
#[must_use]
pub fn request(lease: &str, label: &str, ttl: Ttl) -> Acquire {
    let bits = (u128::from(random_bits()) << 64) | u128::from(random_bits());
    Acquire {
        name: name(lease),
        candidate: Candidate {
            id: CandidateId::new(label).expect("a test gives a valid id"),
            incarnation: Incarnation::from_bits(bits),
        },
        attempt: Attempt::FIRST,
        ttl,
        note: Note::default(),
    }
}

/// The renewal of the term that `request` was granted.
#[must_use]
pub fn renewal(request: &Acquire, token: FencingToken) -> Renew {
    Renew {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token,
        attempt: request.attempt,
        ttl: request.ttl,
    }
}

/// The release of the term that `request` was granted.
#[must_use]
pub fn giving_back(request: &Acquire, token: FencingToken) -> Release {
    Release {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token,
        attempt: request.attempt,
    }
}

/// The grant in an answer.
///
/// # Panics
/// If it is another answer.
#[must_use]
pub fn granted(answer: Acquired) -> Grant {
    match answer {
        Acquired::Granted(grant) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

/// Asks, and is granted.
///
/// # Panics
/// If not.
pub async fn take(store: &dyn LeaseStore, request: &Acquire) -> Grant {
    granted(store.acquire(request).await.expect("the store answers"))
}
