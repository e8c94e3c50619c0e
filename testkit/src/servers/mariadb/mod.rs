//! A MariaDB server, or a MySQL server in its place.

mod family;
mod galera;
mod locate;
mod replication;
mod server;

pub use family::SqlFamily;
pub use locate::mariadb_program;
pub(crate) use locate::{MARIADB_FOLDER, initialised, version_of};
pub use server::Mariadb;
