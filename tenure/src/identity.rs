//! Who this process is.

use tenure_core::{Candidate, CandidateId, Incarnation};

/// A random number from the operating system.
pub(crate) fn random_bits() -> u128 {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        // The kernel never refuses this once it has started: at most it waits for entropy during boot.
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
            .expect("Linux has random numbers");
    }
    u128::from_ne_bytes(bytes)
}

/// The default label of a candidate: host name and process id.
#[must_use]
pub fn default_candidate_id() -> CandidateId {
    let uname = rustix::system::uname();
    let pid = std::process::id();
    let host = uname.nodename().to_string_lossy();
    CandidateId::new(format!("{host}-{pid}"))
        .or_else(|_| CandidateId::new(format!("process-{pid}")))
        .expect("digits and letters are a candidate id")
}

/// This process, as a candidate with this label. Its incarnation is new with every call.
#[must_use]
pub fn candidate(id: CandidateId) -> Candidate {
    Candidate {
        id,
        incarnation: Incarnation::from_bits(random_bits()),
    }
}
