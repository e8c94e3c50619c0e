//! Tenure's leases and fences on etcd.
//!
//! [`EtcdStore`] keeps a record and a few keys for each lease; whether it is held, its holder's session
//! decides. [`EtcdFence`] refuses stale terms in the very transaction that writes. Both speak etcd's own
//! protocol, version 3. Set-up, least privileges, the layout of the keys, what is promised and what is not:
//! the `README.md` of this crate.

mod acquire;
mod ask;
mod attached;
mod beat;
mod clearing;
mod clock;
mod connection;
mod dial;
mod examine;
mod extend;
mod fault;
mod fence;
mod found;
mod keys;
mod known;
mod lane;
mod look;
mod moving;
mod once;
mod one_cluster;
mod purge;
mod record;
mod release;
mod renew;
mod roll;
mod session;
mod shared;
mod side_by_side;
mod site;
mod store;
mod unused;
mod url;
mod version;
mod watch;
mod wire;

#[doc(hidden)]
pub mod fuzzing;

pub use fence::{EtcdFence, FenceCondition, Fenced, FencedTransaction};
pub use store::EtcdStore;
