use crate::{Attempt, Candidate, FencingToken, Incarnation, LeaseName, Note, Ttl};

/// A request to take a lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquire {
    /// The lease.
    pub name: LeaseName,
    /// Who asks.
    pub candidate: Candidate,
    /// By which attempt: the same for every repetition of one try.
    pub attempt: Attempt,
    /// The ttl asked for.
    pub ttl: Ttl,
    /// What to note in the record for people.
    pub note: Note,
}

/// A request to extend a lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Renew {
    /// The lease.
    pub name: LeaseName,
    /// The holder's incarnation.
    pub incarnation: Incarnation,
    /// The term's token.
    pub token: FencingToken,
    /// The term's attempt.
    pub attempt: Attempt,
    /// The ttl asked for.
    pub ttl: Ttl,
}

/// A request to give a lease back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Release {
    /// The lease.
    pub name: LeaseName,
    /// The holder's incarnation.
    pub incarnation: Incarnation,
    /// The term's token.
    pub token: FencingToken,
    /// The term's attempt.
    pub attempt: Attempt,
}

/// A request to ask the holder of a term to step down.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ask {
    /// The lease.
    pub name: LeaseName,
    /// The token of the term that is asked.
    pub token: FencingToken,
}

/// Which leases to list.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Page {
    /// Only names that begin with this text; empty for all.
    pub prefix: String,
    /// Only names after this one.
    pub after: Option<LeaseName>,
    /// At most this many; 1 ..= 1,000, else [`Fault::Invalid`](crate::Fault::Invalid).
    pub limit: u16,
}
