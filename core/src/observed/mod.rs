//! The store contract by observed time, for stores that only compare and swap and have no clock.
//!
//! A lease may be claimed once the **same version** has been visible for **its record's** ttl·(1+ρ) of our
//! own monotonic time. Why no two can hold it then:
//!
//! 1. The holder wrote the version before anybody saw it. It trusts ttl·(1−2ρ) less a step allowance, counted
//!    from *before* it sent that write: less than ttl of true time, on a clock that is too slow by ρ.
//! 2. An observer counts from *after* the answer that showed it the version: ttl·(1+ρ) on a clock that is too
//!    fast by ρ is at least ttl of true time, and it began later.
//! 3. The claim is a swap on the revision that was seen. A renewal or another's claim has made a new
//!    revision, and the swap fails; the new one is observed from the beginning.
//!
//! So the holder's trust has ended before anybody can claim. It needs no common clock and no fresh read: a
//! read that is behind shows a revision that no longer is, and the swap fails.
//!
//! [`Round`] and [`Sightings`] decide everything, and are pure: a simulator drives them in virtual time.

mod acquire;
mod entry;
mod round;
mod sightings;
mod store;
mod swap;
mod term;
mod together;
mod watch;

pub use entry::{Ages, Entry, Revision, Version};
pub use round::{CONFLICTS_MAX, Decide, Decision, Floor, Need, Reading, Response, Round, Seen, Written};
pub use sightings::Sightings;
pub use store::ObservedStore;
pub use swap::{Clock, CompareAndSwap, ListedRecord, RecordEvent, RecordPage, RecordWatch};
