//! A MariaDB server.

mod locate;
mod replication;
mod server;

pub use locate::mariadb_program;
pub(crate) use locate::{MARIADB_FOLDER, initialised, install_program, library_path, root_of, version_of};
pub use server::Mariadb;
