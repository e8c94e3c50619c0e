use super::{Cursor, Lease, StoreError};
use crate::{CandidateId, FencingToken, Ttl};
use std::time::Duration;

/// How an earlier term ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// Its holder gave it back, or gave it up for a later attempt of its own.
    Released,
    /// Its holder did not renew in time.
    Expired,
}

/// The term before a granted one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Predecessor {
    /// Who held it.
    pub candidate: CandidateId,
    /// Its token.
    pub token: FencingToken,
    /// How it ended.
    pub end: End,
    /// How long nobody held the lease, by the store's clock.
    pub vacant_for: Duration,
}

/// A granted term.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Grant {
    /// Its token.
    pub token: FencingToken,
    /// The ttl that the store really granted. It may differ from the one asked for, and it is what counts.
    pub ttl: Ttl,
    /// How many terms there have been, this one included.
    pub terms: u64,
    /// Whether the same attempt had been granted this token before.
    pub again: bool,
    /// The term before; `None` for the first one, and where the store no longer knows. For a term that is
    /// granted again, either.
    pub predecessor: Option<Predecessor>,
}

/// The answer to [`LeaseStore::acquire`](super::LeaseStore::acquire).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Acquired {
    /// The lease is the caller's.
    Granted(Grant),
    /// Somebody holds it; [`Lease::remaining`] says how long to wait.
    Held(Lease),
    /// The same incarnation has made a later attempt, or released this one: the request came too late.
    Superseded,
}

/// What others ask of a holder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wish {
    /// Nothing.
    Nothing,
    /// To end its work, release, and let another take over.
    StepDown,
}

/// The answer to one request of [`LeaseStore::renew`](super::LeaseStore::renew).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Renewed {
    /// The lease lasts for this ttl from now.
    Extended {
        /// The ttl that the store really granted.
        ttl: Ttl,
        /// What others ask of the holder.
        wish: Wish,
    },
    /// The term is over: the record, as it is now, is another term's, vacant, expired or gone (`None`).
    Lost(Option<Box<Lease>>),
}

/// The answer to one request of [`LeaseStore::release`](super::LeaseStore::release).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Released {
    /// The lease is vacant.
    Vacated,
    /// The record is another term's, or gone (`None`); nothing was changed.
    NotYours(Option<Box<Lease>>),
}

/// The answer to [`LeaseStore::ask`](super::LeaseStore::ask).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Asked {
    /// The holder will learn of it.
    Noted,
    /// No such term is held now.
    NotHeld,
}

/// One record of a page.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Listed {
    /// A lease.
    Lease(Lease),
    /// A record that cannot be understood: [`Fault::Unreadable`](super::Fault::Unreadable). With any other
    /// fault, one of which the store cannot tell now who holds the lease.
    Unreadable {
        /// Its key as the store shows it, escaped.
        key: String,
        /// Why.
        error: StoreError,
    },
}

/// The answer to [`LeaseStore::list`](super::LeaseStore::list).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeasePage {
    /// The records, in the order of their names.
    pub leases: Vec<Listed>,
    /// Where the next page begins: give it as [`Page::after`](super::Page::after). `None` on the last page.
    pub next: Option<Cursor>,
}
