//! Tenure's leases and fences on MongoDB.
//!
//! [`MongoStore`] keeps leases, one document each, and judges them by the server's clock. [`MongoFence`]
//! refuses stale terms inside the user's own transactions. Set-up, least privileges, the record's layout,
//! what is promised and what is not: the `README.md` of this crate.

mod acquire;
mod ask;
mod builder;
mod database;
mod driver;
mod examine;
mod fault;
mod fence;
mod heard;
mod identity;
mod indexes;
mod kind;
mod lines;
mod list;
mod login;
mod lone;
mod pipeline;
mod purge;
mod record;
mod release;
mod renew;
mod seen;
mod shell;
mod short;
mod site;
mod store;
mod strangers;
mod tied;
mod tls_files;
mod unread_options;
mod url;
mod watch;

#[doc(hidden)]
pub mod fuzzing;

pub use builder::MongoStoreBuilder;
pub use fence::{BulkResult, EnterError, FencedCollection, FencedUpdate, MongoFence};
pub use store::MongoStore;

/// The driver whose sessions a fence enters.
pub use mongodb;

/// What the store's own thread talks to.
const SYSTEM: tenure_remote::System = tenure_remote::System {
    name: "MongoDB",
    thread: "tenure-mongodb",
};
