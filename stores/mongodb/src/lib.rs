//! Leases and fences on MongoDB.

mod acquire;
mod ask;
mod builder;
mod examine;
mod fault;
mod fence;
mod indexes;
mod list;
mod pipeline;
mod record;
mod release;
mod renew;
mod site;
mod store;
mod thread;
mod url;
mod watch;

pub use builder::MongoStoreBuilder;
pub use fence::{EnterError, MongoFence};
pub use store::MongoStore;
