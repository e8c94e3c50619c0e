//! At most one process believes in a lease at any moment of real time.

use super::belief_is_sound::Believed;
use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "one-believer",
    guarantee: "G2",
    source: "I3",
    assumes: Assumes::RateStepStore,
};

/// Whether two processes do not both believe at `real`.
///
/// # Errors
/// [`Breach`](super::Breach) if they do.
pub fn one_believer(mine: (u64, Believed), theirs: (u64, Believed), real: u64) -> Verdict {
    let both = mine.1.at(real) && theirs.1.at(real);
    hold(&LAW, !both, || {
        format!(
            "processes {} and {} both believe: in tokens {} and {}",
            mine.0, theirs.0, mine.1.token, theirs.1.token
        )
    })
}
