use super::{Cursor, Fault, StoreError};
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
    /// Only what comes after this: where the page before ended, or any name.
    pub after: Option<Cursor>,
    /// At most this many; 1 ..= 1,000, else [`Fault::Invalid`](crate::Fault::Invalid).
    pub limit: u16,
    /// All of them, or those that are held.
    pub selection: Selection,
}

/// Which leases somebody asks for who lists them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Selection {
    /// All that have a record.
    All,
    /// What is held: a lease that was given back may be left out, and need not be. A store in which that
    /// spares something does so, as leases that nobody holds may be many.
    Held,
}

impl Page {
    /// Most leases of one page.
    pub const LIMIT_MAX: u16 = 1_000;

    /// The first page of all leases whose names begin with `prefix`.
    #[must_use]
    pub fn first(prefix: impl Into<String>, limit: u16) -> Self {
        Self {
            prefix: prefix.into(),
            after: None,
            limit,
            selection: Selection::All,
        }
    }

    /// Refuses a page that is outside its bounds, which every store does before it asks anything.
    ///
    /// # Errors
    /// [`Fault::Invalid`](crate::Fault::Invalid), not applied: a [`limit`](Self::limit) outside 1 ..= 1,000.
    pub fn check(&self) -> Result<(), StoreError> {
        limit_within(self.limit, "leases")
    }

    /// Whether a key belongs to this page or to one after it.
    #[must_use]
    pub fn holds(&self, key: &[u8]) -> bool {
        let after = self.after.as_ref().map(Cursor::as_bytes);
        key.starts_with(self.prefix.as_bytes()) && after.is_none_or(|after| key > after)
    }
}

/// Refuses a page of so many `things` that is outside its bounds.
pub(super) fn limit_within(limit: u16, things: &str) -> Result<(), StoreError> {
    if (1..=Page::LIMIT_MAX).contains(&limit) {
        return Ok(());
    }
    let message = format!("a page of {limit} {things} is outside 1 to {}", Page::LIMIT_MAX);
    Err(StoreError::not_applied(Fault::Invalid, message))
}
