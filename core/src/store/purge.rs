//! Removing records that nobody uses: an operator's act, apart from what elects.

use super::request::limit_within;
use super::{Answer, Cursor, LeaseStore, Page, Selection, StoreError};
use crate::{LeaseName, Ttl};
use std::time::Duration;

/// A thousand years, in milliseconds: no clock of a store overflows by it, and Lua's numbers keep it exactly.
const UNUSED_MS_MAX: i64 = 1000 * 366 * 24 * 60 * 60 * 1000;

/// Shortest time that a record must have been unused, in units of its own ttl, whatever is asked for: a
/// request of its last holder that is still under way must not find the name as if it had never been there.
pub const PURGE_TTLS_MIN: u32 = 10;

/// What to do with the records that nobody uses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purging {
    /// Remove them.
    Removes,
    /// Only say which they are.
    OnlyLooks,
}

/// A request to remove the records that nobody uses, a page at a time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Purge {
    /// Only names that begin with this text; empty for all.
    pub prefix: String,
    /// Only what comes after this: where the page before ended, or any name.
    pub after: Option<Cursor>,
    /// At most so many records are looked at; 1 ..= 1,000, else [`Fault::Invalid`](crate::Fault::Invalid).
    pub limit: u16,
    /// For how long nobody has used them, at least; [`PURGE_TTLS_MIN`] of a record's own ttls count at least.
    pub unused_for: Duration,
    /// Whether they are removed.
    pub purging: Purging,
}

impl Purge {
    /// Refuses a page that is outside its bounds, which every store does before it asks anything.
    ///
    /// # Errors
    /// [`Fault::Invalid`](crate::Fault::Invalid), not applied: a [`limit`](Self::limit) outside 1 ..= 1,000.
    pub fn check(&self) -> Result<(), StoreError> {
        limit_within(self.limit, "leases to clean up")
    }

    /// The page of leases that it looks at.
    #[must_use]
    pub fn page(&self) -> Page {
        Page {
            prefix: self.prefix.clone(),
            after: self.after.clone(),
            limit: self.limit,
            selection: Selection::All,
        }
    }

    /// [`unused_for`](Self::unused_for) in milliseconds, for a store's own arithmetic: at most a thousand
    /// years.
    #[must_use]
    pub fn unused_for_ms(&self) -> i64 {
        i64::try_from(self.unused_for.as_millis()).map_or(UNUSED_MS_MAX, |asked| asked.min(UNUSED_MS_MAX))
    }

    /// For how long a record with this ttl must have been unused.
    #[must_use]
    pub fn unused_at_least(&self, ttl: Ttl) -> Duration {
        self.unused_for.max(ttl.duration() * PURGE_TTLS_MIN)
    }
}

/// The answer to [`LeasePurge::purge`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Purged {
    /// The names that nobody uses, of those that were looked at, in their order.
    pub unused: Vec<LeaseName>,
    /// How many of them were removed. Fewer than [`unused`](Self::unused) where somebody took one meanwhile.
    pub removed: u64,
    /// Where the next page begins: give it as [`Purge::after`]. `None` on the last page.
    pub next: Option<Cursor>,
}

/// A store whose unused records can be removed.
///
/// Apart from [`LeaseStore`], which removes nothing: a service needs neither this nor the right to do it.
///
/// # To ensure correctness
/// A record is removed only if, in the atomic step that removes it and by the store's clock, **all** of this
/// holds:
/// - nobody holds it: it was released, or has expired;
/// - nobody has used it for [`Purge::unused_for`], nor for [`PURGE_TTLS_MIN`] times its own ttl; a store
///   whose system keeps no such time [notes](Self::notes_first) when a clean-up finds it unused, says whose
///   clock that is, and counts from there;
/// - its token is below the clock that the name's next token starts from, so that tokens still rise;
/// - it can be understood.
///
/// What is removed with it is only what belongs to the record alone. No mark of a fence is touched.
pub trait LeasePurge: LeaseStore {
    /// Whether the system keeps no time by which a record could be called unused. Then a clean-up that
    /// [removes](Purging::Removes) notes what it finds unused for the first time, and a later one removes
    /// what has stayed so for long enough since: nothing goes at the first.
    fn notes_first(&self) -> bool;

    /// Removes the unused records of one page, or says which they are. A page is bounded by what is looked
    /// at, so that no call keeps a store busy for long, whatever it holds.
    ///
    /// # Errors
    /// [`StoreError`]. What was removed before stays removed.
    fn purge<'a>(&'a self, request: &'a Purge) -> Answer<'a, Result<Purged, StoreError>>;
}
