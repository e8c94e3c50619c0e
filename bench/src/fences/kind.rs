//! The fences that are measured.

use crate::server;
use clap::ValueEnum;

/// Which fence protects the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// A watermark in a process.
    Watermark,
    /// The fence over HTTP, before a service.
    Http,
    /// The writer's transaction on SQLite.
    SqliteEnter,
    /// Triggers of SQLite.
    SqliteTable,
    /// The writer's transaction on MongoDB.
    MongoTransaction,
    /// Each document of MongoDB by itself.
    MongoDocument,
    /// The writer's transaction on PostgreSQL.
    PostgresEnter,
    /// Triggers of PostgreSQL.
    PostgresGuard,
    /// The writer's transaction on MariaDB.
    MysqlEnter,
    /// Triggers of MariaDB.
    MysqlGuard,
    /// A script of Redis.
    RedisScript,
    /// A transaction of etcd, which compares the mark.
    EtcdTransaction,
    /// A message of NATS, which is stored over the mark that its term has claimed.
    NatsMessage,
}

impl Kind {
    /// What keeps the number and its mark, where it is a server.
    pub fn server(self) -> Option<server::Kind> {
        match self {
            Self::Watermark | Self::Http | Self::SqliteEnter | Self::SqliteTable => None,
            Self::MongoTransaction | Self::MongoDocument => Some(server::Kind::Mongodb),
            Self::PostgresEnter | Self::PostgresGuard => Some(server::Kind::Postgres),
            Self::MysqlEnter | Self::MysqlGuard => Some(server::Kind::Mysql),
            Self::RedisScript => Some(server::Kind::Redis),
            Self::EtcdTransaction => Some(server::Kind::Etcd),
            Self::NatsMessage => Some(server::Kind::Nats),
        }
    }

    /// As the command line has it.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
