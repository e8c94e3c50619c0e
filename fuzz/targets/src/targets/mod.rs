//! The targets: one function each, `judge(bytes)`, which panics when a promise is broken.

pub mod engine;

mod choices;
mod configuration;
#[cfg(feature = "etcd")]
mod etcd_record;
#[cfg(feature = "mongodb")]
mod mongodb_record;
#[cfg(feature = "mysql")]
mod mysql_record;
#[cfg(feature = "nats")]
mod nats_record;
mod observed;
#[cfg(feature = "postgres")]
mod postgres_record;
#[cfg(feature = "redis")]
mod redis_record;
mod sqlite_record;
mod text;
mod trace_reader;
mod url;

#[cfg(feature = "etcd")]
pub use etcd_record::TARGET as ETCD_RECORD;
#[cfg(feature = "mongodb")]
pub use mongodb_record::TARGET as MONGODB_RECORD;
#[cfg(feature = "mysql")]
pub use mysql_record::TARGET as MYSQL_RECORD;
#[cfg(feature = "nats")]
pub use nats_record::TARGET as NATS_RECORD;
#[cfg(feature = "postgres")]
pub use postgres_record::TARGET as POSTGRES_RECORD;
#[cfg(feature = "redis")]
pub use redis_record::TARGET as REDIS_RECORD;
pub use {
    configuration::TARGET as CONFIGURATION, engine::TARGET as ENGINE, observed::TARGET as OBSERVED,
    sqlite_record::TARGET as SQLITE_RECORD, trace_reader::TARGET as TRACE_READER, url::TARGET as URL,
};

use crate::Target;

/// Every target that is compiled in.
pub const ALL: &[Target] = &[
    ENGINE,
    OBSERVED,
    SQLITE_RECORD,
    #[cfg(feature = "mongodb")]
    MONGODB_RECORD,
    #[cfg(feature = "nats")]
    NATS_RECORD,
    #[cfg(feature = "redis")]
    REDIS_RECORD,
    #[cfg(feature = "etcd")]
    ETCD_RECORD,
    #[cfg(feature = "mysql")]
    MYSQL_RECORD,
    #[cfg(feature = "postgres")]
    POSTGRES_RECORD,
    URL,
    CONFIGURATION,
    TRACE_READER,
];
