//! Tenure's leases and fences on MySQL and MariaDB.
//!
//! [`MysqlStore`] keeps leases, one row each, and judges them by the server's clock. [`MysqlFence`] refuses
//! stale terms inside the user's own transactions. Set-up, least privileges, the record's layout, what is
//! promised and what is not: the `README.md` of this crate.

mod acquire;
mod connect;
mod dial;
mod durability;
mod examine;
mod fault;
mod fence;
mod greeting;
mod init;
mod lane;
mod later;
mod look;
mod one_store;
mod procedures;
mod purge;
mod record;
mod row;
mod rules;
mod schema;
mod server;
mod session;
mod short;
mod site;
mod store;
mod terms;
mod unsettled;
mod url;
mod watch;

#[doc(hidden)]
pub mod fuzzing;

pub use fence::MysqlFence;
/// The driver whose transactions a fence enters.
pub use mysql_async;
#[doc(hidden)]
pub use short::statements as short_way;
pub use store::MysqlStore;

/// What the store's own thread talks to.
const SYSTEM: tenure_remote::System = tenure_remote::System {
    name: "MySQL",
    thread: "tenure-mysql",
};
