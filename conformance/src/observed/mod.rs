//! A store in memory that only compares and swaps, to check the adaptor of `tenure-core` with.
//!
//! [`SwapModel`] keeps records and revisions and knows nothing of leases; [`ObservedSubject`] is
//! [`ObservedStore`](tenure_core::ObservedStore) over it, with observers whose clocks run apart as far as the
//! adaptor allows. [`ObservedDefect`] lists what could be wrong with it, and the case that would notice.

mod clock;
mod defect;
mod flawed;
mod records;
mod store;
mod subject;

pub use clock::ObserverClock;
pub use defect::ObservedDefect;
pub use flawed::FlawedObservedSubject;
pub use records::{SwapRecords, SwapSlot};
pub use store::{RevisionKind, SwapModel, TokenFloor};
pub use subject::ObservedSubject;
