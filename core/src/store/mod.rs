//! The store contract: what a foreign system must do to hold leases.

mod cursor;
mod error;
mod examination;
mod glance;
mod lease;
mod outcome;
mod purge;
mod request;
mod traits;
mod watch;

pub use cursor::Cursor;
pub use error::{Certainty, Fault, StoreError};
pub use examination::{Finding, Verdict};
pub use glance::{Glance, Glances, changes_between};
pub use lease::{Lease, Occupancy};
pub use outcome::{Acquired, Asked, End, Grant, LeasePage, Listed, Predecessor, Released, Renewed, Wish};
pub use purge::{LeasePurge, PURGE_TTLS_MIN, Purge, Purged, Purging};
pub use request::{Acquire, Ask, Page, Release, Renew, Selection};
pub use traits::{Durability, StoreTraits, Timekeeper, TokenSource, WatchSource};
pub use watch::{Change, Interest, Scope, Watch, WatchEvent};

use crate::LeaseName;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// The future of a store's answer.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Work that a store may run beside its own requests: see [`LeaseStore::run_beside`].
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A system that keeps leases: one implementation per store, the same conformance suite for all.
///
/// # To ensure correctness
/// - Every method is **one atomic step** in the store and, where the store can, one round trip.
/// - **No retry, no background task** inside a store: the engine decides what is repeated, and when.
/// - Time is the store's. A client's wall clock is never written as an expiry and never compared with one.
/// - A record is never deleted by release or expiry; its token stays, and the next one is greater:
///   [`FencingToken::successor`](crate::FencingToken::successor).
/// - A record that cannot be understood is answered with [`Fault::Unreadable`] and left as it is.
/// - A read that decides anything is never answered by a replica that may lag.
/// - A future that is dropped may or may not have been applied: the caller counts it as
///   [`Certainty::Unknown`]. Nothing may be left locked by dropping it.
/// - When unsure whether a write was applied, the error says [`Certainty::Unknown`].
///
/// No method has a default: a wrapper cannot forget one.
pub trait LeaseStore: Send + Sync {
    /// What this store is and can do. Constant for the life of the store; no I/O.
    fn traits(&self) -> StoreTraits;

    /// Takes the lease if it is free.
    ///
    /// # Guarantee
    /// Decided in this order, in one atomic step, by the store's clock:
    /// 1. No record, or a vacant or expired one: **granted**, with the successor token — except that a
    ///    *vacant* record whose last holder is the same incarnation with this attempt or a later one is
    ///    [`Acquired::Superseded`] (a late duplicate must not create a lease that nobody knows of).
    /// 2. Held by the same incarnation with the same attempt: **the same token again**, and the lease is
    ///    extended by the ttl from now ([`Grant::again`]). This is how a lost reply is resolved.
    /// 3. Held by the same incarnation with an earlier attempt: **granted**, with the successor token (the
    ///    earlier attempt is one whose outcome this process never learnt, and gave up).
    /// 4. Held by the same incarnation with a later attempt: [`Acquired::Superseded`].
    /// 5. Held by anyone else: [`Acquired::Held`], nothing is written.
    ///
    /// A lease is expired when its remaining time is zero or less. An *expired* record of the same
    /// incarnation and the same attempt is granted a new token, like any expired one; with a later attempt
    /// in the record the request is [`Acquired::Superseded`].
    ///
    /// # Errors
    /// [`StoreError`]; `Unknown` unless it certainly was not applied. [`Fault::Invalid`] for a ttl outside
    /// the store's range. Where no successor token exists any more, an error that names the lease; nothing is
    /// written.
    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>>;

    /// Extends leases that are held: each by its ttl from now, by the store's clock.
    ///
    /// # Guarantee
    /// One answer per request, in their order; one request never disturbs another. A lease is extended only
    /// if incarnation, token and attempt are those of the record and it has not expired or been released:
    /// renewing never revives, and changes neither holder nor token. Nor does it bring the lease's end nearer
    /// than it was, unless the ttl asked for is shorter, and but for steps of the store's clock: a holder
    /// whose answer was lost trusts what it was granted before. At most [`StoreTraits::batch_max`] requests
    /// are given at once.
    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>>;

    /// Gives leases back: the record becomes vacant and keeps its token, incarnation and attempt.
    ///
    /// # Guarantee
    /// One answer per request, in their order. Only the very term (incarnation, token, attempt) is
    /// released, also when it has expired unclaimed. Idempotent: releasing a term whose record is vacant
    /// already answers [`Released::Vacated`] again. Watchers are woken.
    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>>;

    /// Leaves a wish for the holder in the record: it learns of it with its next renewal, or by its watch.
    ///
    /// # Guarantee
    /// Noted only if the lease is held, unexpired, with this token. Changes neither holder, token nor
    /// expiry. The wish is gone with the term: the next one begins without it.
    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>>;

    /// Reads one lease; `None` where no record exists. The remaining time is by the store's clock.
    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>>;

    /// Reads leases in the order of their names (bytes of UTF-8), a page at a time: all of them, or those
    /// that [the page asks for](Selection), and perhaps others beside them.
    ///
    /// A record that cannot be understood is listed as [`Listed::Unreadable`], and hides no other; where its
    /// key could be a name, in its place. A page may have fewer leases than asked for, or none, and say where
    /// the next begins: only one that does not is the last.
    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>>;

    /// Starts watching. What it reports is a hint: it may lag and may repeat, never lie about order.
    ///
    /// When this answers, the watch is in place: a change after that moment is reported if it is [waited
    /// for](Interest), though a watch that polls may report only the last of several. So: watch, then read,
    /// then wait.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] where the store (or this set-up of it, like a standalone MongoDB) cannot
    /// push; waiting by `remaining` works without it.
    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>>;

    /// Examines the store for an operator: reachability, privileges, effective durability, clock, layout.
    ///
    /// Writes nothing, except to a scratch record of its own that it removes. A check that cannot be made
    /// is a finding too. `Err` only if nothing at all could be examined.
    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>>;

    /// Runs `work` on the thread on which this store's own requests run: what asks much of the store is
    /// spared the way there and back, which costs a tenth of a millisecond where processors sleep.
    ///
    /// The thread has a tokio runtime, and no task of the user's runs there. `work` must not block it: what
    /// it calls (a subscriber to the log, for instance) holds up every request of the store meanwhile. The
    /// thread lives as long as the store, which `work` keeps by holding it.
    ///
    /// # Errors
    /// `work` itself: the store has no such thread, as its requests run where they are awaited. Whoever asked
    /// runs it.
    fn run_beside(&self, work: Work) -> Result<(), Work>;
}

/// By its traits, for whoever keeps one: a store itself may hold passwords.
impl fmt::Debug for dyn LeaseStore + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeaseStore").field(&self.traits().kind).finish()
    }
}
