//! A PostgreSQL server, and a pooler in front of one.

pub(in crate::servers) mod certificate;
mod family;
mod locate;
mod memory;
mod pgbouncer;
mod server;
mod unprivileged;

pub(crate) use locate::POSTGRES_FOLDER;
pub use locate::{pgbouncer_program, postgres_programs, with_postgres_programs};
pub use pgbouncer::PgBouncer;
pub use server::Postgres;
