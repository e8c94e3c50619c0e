//! Real servers, each behind a guard.

mod locate;
mod mongod;
mod nats;
mod nats_cluster;
mod node;
mod postgres;
mod redis;
mod redis_sentinels;
mod replica_set;
mod users;

pub(crate) use locate::{
    MONGOD_FOLDER, NATS_FOLDER, REDIS_FOLDER, VALKEY_FOLDER, mongod_in, nats_in, redis_in,
};
pub use locate::{mongod_program, nats_program, redis_program};
pub use mongod::Mongod;
pub use nats::{NatsOptions, NatsServer};
pub use nats_cluster::NatsCluster;
pub(crate) use postgres::POSTGRES_FOLDER;
pub use postgres::{PgBouncer, Postgres, pgbouncer_program, postgres_programs};
pub(crate) use redis::libraries;
pub use redis::{RedisBuild, RedisOptions, RedisServer};
pub use redis_sentinels::RedisSentinels;
pub use replica_set::{ReplicaSet, Size};
pub use users::User;
pub(crate) use users::connection_string;
