//! Tenure's leases and fences on Redis and Valkey.
//!
//! [`RedisStore`] keeps leases, one hash each, and judges them by the server's clock, in one script per
//! request; [`QuorumStore`] keeps them in several independent servers. [`RedisFence`] refuses stale terms in
//! the very script that writes. Set-up, least privileges, the record's layout, what is promised and what is
//! not: the `README.md` of this crate.

mod acquire;
mod admission;
mod alone;
mod ask;
mod connect;
mod durability;
mod examine;
mod fault;
mod fence;
mod id;
mod keys;
mod link;
mod list;
mod members;
mod membership;
mod not_greeted;
mod one_place;
mod one_store;
mod purge;
mod quorum;
mod read;
mod record;
mod release;
mod renew;
mod reply;
mod script;
mod sentinels;
mod site;
mod store;
mod url;
mod watch;
mod words;

#[doc(hidden)]
pub mod fuzzing;

pub use fence::{FencedScript, FencedWrites, RedisFence};
pub use quorum::QuorumStore;
pub use redis::Value;
pub use store::RedisStore;

/// What the store's own thread talks to.
const SYSTEM: tenure_remote::System = tenure_remote::System {
    name: "Redis",
    thread: "tenure-redis",
};
