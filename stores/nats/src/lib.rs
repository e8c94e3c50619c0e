//! Tenure's leases and fences on NATS JetStream.
//!
//! [`NatsStore`] keeps leases in a key-value bucket, one record each, and judges them by observed time: NATS
//! compares and swaps, and has no clock that a condition could use. [`NatsFence`] refuses stale terms in the
//! very message that writes. Set-up, least privileges, the record's layout, what is promised and what is not:
//! the `README.md` of this crate.

mod ages;
mod api;
mod bucket;
mod clock;
mod connect;
mod credentials;
mod dialled;
mod durability;
mod examine;
mod fault;
mod fence;
mod keys;
mod link;
mod list;
mod login;
mod moments;
mod one_bucket;
mod purge;
mod record;
mod roll;
mod room;
mod site;
mod store;
mod swap;
mod url;
mod version;
mod watch;

#[doc(hidden)]
pub mod fuzzing;

pub use fence::NatsFence;
pub use store::NatsStore;
