//! Tenure's leases and fences on Redis and Valkey.
//!
//! [`RedisStore`] keeps leases, one hash each, and judges them by the server's clock, in one script per request.
//! Set-up, least privileges, the record's layout, what is promised and what is not: the `README.md` of this crate.

mod acquire;
mod ask;
mod connect;
mod durability;
mod examine;
mod fault;
mod keys;
mod link;
mod list;
mod read;
mod record;
mod release;
mod renew;
mod reply;
mod script;
mod site;
mod store;
mod thread;
mod url;
mod watch;

#[doc(hidden)]
pub mod fuzzing;

pub use store::RedisStore;
