//! Two processes with one candidate id are two candidates, and the standby is told.

use super::{Assumes, Law, Verdict, hold};
use tenure_core::{Candidate, Lease};

pub(super) const LAW: Law = Law {
    name: "twin-is-told",
    guarantee: "G14",
    source: "I3",
    assumes: Assumes::Nothing,
};

/// Whether a standby that was shown `lease` was told rightly whether its holder is a twin.
///
/// # Errors
/// [`Breach`](super::Breach) if not, or if it stands by for itself.
pub fn twin_is_told(me: &Candidate, lease: &Lease, twin: bool) -> Verdict {
    let another = lease.holder.incarnation != me.incarnation;
    let namesake = lease.holder.id == me.id;
    hold(&LAW, another && twin == namesake, || {
        format!("{me} stands by for {} and was told twin: {twin}", lease.holder)
    })
}
