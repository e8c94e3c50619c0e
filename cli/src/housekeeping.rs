//! What Tenure keeps in a store by itself, beside the leases of its users.

use tenure::contract::Lease;
use tenure::tooling::History;

/// The lease that `tenure doctor` takes; where another doctor holds it, the next of its names.
pub(crate) const DOCTORS_LEASE: &str = "tenure-doctor/clock";

/// By which it is told from a lease of a user's that has such a name.
pub(crate) const DOCTORS_NOTE: &str = "kept by tenure doctor";

/// Whether it is of nobody's but Tenure's concern. Where a doctor has looked, its lease is there until
/// `tenure gc` removes it.
pub(crate) fn is_kept_by_tenure(lease: &Lease) -> bool {
    let is_a_doctors = lease.name.as_str().starts_with(DOCTORS_LEASE) && lease.note.as_str() == DOCTORS_NOTE;
    is_a_doctors || History::is_kept_by_tenure(lease)
}
