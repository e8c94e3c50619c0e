//! A process never believes in a lease that the store has given to another, or has let expire.

use super::{Assumes, Law, Truth, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "belief-is-sound",
    guarantee: "G2",
    source: "I2",
    assumes: Assumes::RateStepStore,
};

/// What an engine believes of a lease until its next step, in real time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Believed {
    /// The term's token; 0 for no belief.
    pub token: u64,
    /// When belief ends by the process's own clock, in nanoseconds.
    pub until_local: u64,
    /// The same moment in real time, as the process's clock runs now.
    pub until_real: u64,
}

impl Believed {
    /// Whether it is believed at this real moment.
    #[must_use]
    pub fn at(&self, real: u64) -> bool {
        self.token != 0 && real < self.until_real
    }
}

/// Whether what process `holder` believes at `real` is what the record says. `expires_real` is when the
/// record expires, in real time, as the store's clock runs now.
///
/// To be asked whenever belief or record changes, and at every expiry: between those, nothing does.
///
/// # Errors
/// [`Breach`](super::Breach) if it believes though the record is another term's, released, expired or gone.
pub fn belief_is_sound(
    holder: u64,
    believed: Believed,
    truth: Option<Truth>,
    expires_real: u64,
    real: u64,
) -> Verdict {
    if !believed.at(real) {
        return Ok(());
    }
    let sound = truth.is_some_and(|truth| {
        truth.holder == holder && truth.token == believed.token && !truth.released && real < expires_real
    });
    hold(&LAW, sound, || {
        let left = std::time::Duration::from_nanos(believed.until_real - real);
        let token = believed.token;
        match truth {
            None => format!(
                "process {holder} believes in token {token} for {left:?} more; the store has no record"
            ),
            Some(truth) if truth.token == token && !truth.released => format!(
                "process {holder} believes in token {token} for {left:?} more; it has expired in the store"
            ),
            Some(truth) => format!(
                "process {holder} believes in token {token} for {left:?} more; the store's record is {truth:?}"
            ),
        }
    })
}
