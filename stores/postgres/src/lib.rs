//! Tenure's leases and fences on PostgreSQL.
//!
//! [`PostgresStore`] keeps leases, one row each, and judges them by the server's clock. [`PostgresFence`]
//! refuses stale terms inside the user's own transactions. Set-up, least privileges, the record's layout,
//! what is promised and what is not: the `README.md` of this crate.

mod acquire;
mod audience;
mod connect;
mod dial;
mod direct;
mod examine;
mod fault;
mod fence;
mod init;
mod kept;
mod lane;
mod login;
mod look;
mod one_cluster;
mod password;
mod purge;
mod record;
mod schema;
mod shared;
mod site;
mod store;
mod terms;
mod tls;
mod url;
mod watch;

#[doc(hidden)]
pub mod fuzzing;

pub use fence::PostgresFence;
pub use store::PostgresStore;
/// The driver whose transactions a fence enters.
pub use tokio_postgres;

/// What the store's own thread talks to.
const SYSTEM: tenure_remote::System = tenure_remote::System {
    name: "PostgreSQL",
    thread: "tenure-postgres",
};
