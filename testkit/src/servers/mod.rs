//! Real servers, each behind a guard.

mod clock;
mod etcd;
mod etcd_space;
mod locate;
mod mariadb;
mod mongod;
mod nats;
mod nats_cluster;
mod node;
mod postgres;
mod redis;
mod redis_cluster;
mod redis_sentinels;
mod replica_set;
mod small_disk;
mod users;

pub use clock::ServerClock;
pub use etcd::{Etcd, EtcdOptions, Members};
pub(crate) use locate::{
    ETCD_FOLDER, FAKETIME_FOLDER, GALERA_FOLDER, MONGOD_FOLDER, NATS_FOLDER, NFTABLES_FOLDER, REDIS_FOLDER,
    VALKEY_FOLDER, etcd_in, mongod_in, redis_in,
};
pub use locate::{
    etcd_program, faketime_library, galera_library, mongod_program, nats_program, nft_command, redis_program,
};
pub(crate) use mariadb::{MARIADB_FOLDER, initialised, version_of};
pub use mariadb::{Mariadb, SqlFamily, mariadb_program};
pub use mongod::Mongod;
pub use nats::{NatsOptions, NatsServer};
pub use nats_cluster::NatsCluster;
pub(crate) use postgres::POSTGRES_FOLDER;
pub use postgres::{PgBouncer, Postgres, pgbouncer_program, postgres_programs, with_postgres_programs};
pub(crate) use redis::libraries;
pub use redis::{RedisBuild, RedisOptions, RedisServer};
pub use redis_cluster::RedisCluster;
pub use redis_sentinels::RedisSentinels;
pub use replica_set::{ReplicaSet, Size};
pub use users::User;
pub(crate) use users::connection_string;
