//! A store of the bench's own.

use crate::server::{Kind, quorum_url, redis_quorum};
use std::sync::Arc;
use tenure::SharedStore;
use tenure::etcd::EtcdStore;
use tenure::mongodb::MongoStore;
use tenure::mysql::MysqlStore;
use tenure::nats::NatsStore;
use tenure::postgres::PostgresStore;
use tenure::redis::{QuorumStore, RedisStore};
use tenure::sqlite::SqliteStore;
use tenure_testkit::{
    Etcd, EtcdOptions, Mariadb, NatsOptions, NatsServer, Postgres, RedisOptions, RedisServer, ReplicaSet,
    ScratchDir, Size,
};

pub enum Place {
    Sqlite(ScratchDir),
    Mongodb(ReplicaSet),
    Postgres(Postgres),
    Mysql(Mariadb),
    Redis(RedisServer),
    RedisQuorum(Vec<RedisServer>),
    Etcd(Etcd),
    Nats(NatsServer),
}

impl Place {
    pub async fn start(kind: Kind, size: Size) -> Self {
        match kind {
            Kind::Sqlite => Self::Sqlite(ScratchDir::new("bench-locks")),
            Kind::Redis => Self::Redis(
                RedisServer::start(RedisOptions::durable())
                    .await
                    .expect("a Redis server"),
            ),
            Kind::RedisQuorum => Self::RedisQuorum(redis_quorum().await),
            Kind::Etcd => Self::Etcd(
                Etcd::start(EtcdOptions::three())
                    .await
                    .expect("a cluster of etcd"),
            ),
            Kind::Postgres => {
                let server = Postgres::start().await.expect("a PostgreSQL server");
                PostgresStore::init(&server.uri()).await.expect("its schema");
                Self::Postgres(server)
            }
            Kind::Mysql => {
                let server = Mariadb::start().await.expect("a MariaDB server");
                server.execute("CREATE DATABASE jobs").await.expect("a database");
                MysqlStore::init(&server.uri_of("jobs"))
                    .await
                    .expect("its tables");
                Self::Mysql(server)
            }
            Kind::Nats => Self::Nats(
                NatsServer::start(NatsOptions::default())
                    .await
                    .expect("a NATS server"),
            ),
            Kind::Mongodb => Self::Mongodb(ReplicaSet::start(size).await.expect("a replica set")),
        }
    }

    /// A handle of its own, as another process would have.
    pub async fn store(&self) -> SharedStore {
        self.store_apart("locks").await
    }

    /// The same, in a file of this name where the store is one.
    pub async fn store_apart(&self, file: &str) -> SharedStore {
        match self {
            Self::Sqlite(folder) => Arc::new(SqliteStore::open(folder.join(format!("{file}.db"))).unwrap()),
            Self::Redis(server) => Arc::new(RedisStore::connect(&server.url()).await.unwrap()),
            Self::RedisQuorum(five) => Arc::new(QuorumStore::connect(&quorum_url(five)).await.unwrap()),
            Self::Etcd(etcd) => Arc::new(EtcdStore::connect(&etcd.url()).await.unwrap()),
            Self::Postgres(server) => Arc::new(PostgresStore::connect(&server.uri()).await.unwrap()),
            Self::Mysql(server) => Arc::new(MysqlStore::connect(&server.uri_of("jobs")).await.unwrap()),
            Self::Nats(server) => Arc::new(NatsStore::connect(&server.url()).await.unwrap()),
            Self::Mongodb(set) => Arc::new(MongoStore::for_locks().connect(&set.uri()).await.unwrap()),
        }
    }
}
