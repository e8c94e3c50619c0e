use crate::{Attempt, Candidate, FencingToken, LeaseName, Note, Ttl};
use std::time::Duration;

/// Whether a lease may be taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Occupancy {
    /// Somebody holds it.
    Held,
    /// Its holder did not renew in time; the next to ask gets it.
    Expired,
    /// Its last holder gave it back; the next to ask gets it.
    Vacant,
}

/// A lease as its record says, at the moment the store answered. [`remaining`](Self::remaining) is by the
/// store's clock, or by what this process has observed, as the store's [`Timekeeper`](crate::Timekeeper)
/// says.
///
/// The ages ([`held_for`](Self::held_for), [`renewed_ago`](Self::renewed_ago)) are for people, and decide
/// nothing about who holds it. They are by the store's clock, or, where the README of the store says so, by
/// those of the holder's machine and of this one. Where nothing tells of them, they count from when this
/// process first saw the term, or the renewal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    /// Its name.
    pub name: LeaseName,
    /// Who holds it, or held it last.
    pub holder: Candidate,
    /// The token of the current term, or of the last one.
    pub token: FencingToken,
    /// The attempt by which the term was taken.
    pub attempt: Attempt,
    /// How many terms there have been, this one included. For people; the token is what counts.
    pub terms: u64,
    /// The ttl of the last acquisition or renewal.
    pub ttl: Ttl,
    /// Time until expiry; zero if it has expired or is vacant.
    pub remaining: Duration,
    /// Whether the last holder gave it back.
    pub released: bool,
    /// Time since the term began.
    pub held_for: Duration,
    /// Time since the last renewal, or since the term began if there was none.
    pub renewed_ago: Duration,
    /// Whether somebody asked the holder to step down.
    pub asked_to_step_down: bool,
    /// What the holder noted for people.
    pub note: Note,
}

impl Lease {
    /// Whether it may be taken.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        if self.released {
            Occupancy::Vacant
        } else if self.remaining.is_zero() {
            Occupancy::Expired
        } else {
            Occupancy::Held
        }
    }
}
