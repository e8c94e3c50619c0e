//! Real servers, each behind a guard.

mod locate;
mod mongod;
mod node;
mod postgres;
mod replica_set;
mod users;

pub use locate::mongod_program;
pub(crate) use locate::{MONGOD_FOLDER, mongod_in};
pub use mongod::Mongod;
pub(crate) use postgres::POSTGRES_FOLDER;
pub use postgres::{PgBouncer, Postgres, pgbouncer_program, postgres_programs};
pub use replica_set::{ReplicaSet, Size};
pub use users::User;
pub(crate) use users::connection_string;
