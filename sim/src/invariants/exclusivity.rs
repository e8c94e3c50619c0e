//! At most one process holds a lease, by the store's clock: reckoned from what the store has *answered*.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "one-holder-by-the-store",
    guarantee: "G1",
    source: "I1",
    assumes: Assumes::Store,
};

#[derive(Clone, Copy, Debug)]
struct Holding {
    holder: u64,
    token: u64,
    attempt: u64,
    until_ms: u64,
}

/// Who has been told that the lease is theirs, and until when by the store's clock.
#[derive(Clone, Copy, Default, Debug)]
pub struct Exclusivity {
    holding: Option<Holding>,
}

impl Exclusivity {
    /// The store granted this term at `clock_ms` for `ttl_ms`.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if another process was promised the lease for longer.
    pub fn granted(&mut self, holder: u64, token: u64, attempt: u64, clock_ms: u64, ttl_ms: u64) -> Verdict {
        let before = self.holding;
        let until_ms = clock_ms.saturating_add(ttl_ms);
        self.holding = Some(Holding {
            holder,
            token,
            attempt,
            until_ms,
        });
        let Some(before) = before else { return Ok(()) };
        let over = clock_ms >= before.until_ms
            || before.holder == holder && (before.attempt < attempt || before.token == token);
        hold(&LAW, over, || {
            format!(
                "token {token} was granted to process {holder} at {clock_ms} ms by the store, though process {} \
                 was promised token {} until {} ms",
                before.holder, before.token, before.until_ms
            )
        })
    }

    /// The store confirmed at `clock_ms` that this term lasts for `ttl_ms` from then.
    pub fn extended(&mut self, token: u64, clock_ms: u64, ttl_ms: u64) {
        if let Some(holding) = &mut self.holding
            && holding.token == token
        {
            holding.until_ms = clock_ms.saturating_add(ttl_ms);
        }
    }

    /// This term was given back, or taken back by an operator.
    pub fn vacated(&mut self, token: u64) {
        if self.holding.is_some_and(|holding| holding.token == token) {
            self.holding = None;
        }
    }

    /// The record was cleaned up long after, or the clock was set: nothing is known of promises any more.
    pub fn forget(&mut self) {
        self.holding = None;
    }
}
