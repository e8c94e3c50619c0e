//! Stands in for the identity of the product: whatever is drawn is drawn by the scheduler, so that a schedule
//! is all that a replay needs.

use shuttle::rand::{Rng, thread_rng};
use tenure_core::{Candidate, CandidateId, Incarnation};

pub(crate) fn random_bits() -> u128 {
    thread_rng().r#gen()
}

pub(crate) fn default_candidate_id() -> CandidateId {
    CandidateId::new("somebody").expect("letters are a candidate id")
}

pub(crate) fn candidate(id: CandidateId) -> Candidate {
    Candidate {
        id,
        incarnation: Incarnation::from_bits(random_bits()),
    }
}
