//! A store of the bench's own.

use crate::Kind;
use std::sync::Arc;
use tenure::SharedStore;
use tenure::etcd::EtcdStore;
use tenure::mongodb::MongoStore;
use tenure::redis::RedisStore;
use tenure::sqlite::SqliteStore;
use tenure_testkit::{Etcd, EtcdOptions, RedisOptions, RedisServer, ReplicaSet, ScratchDir, Size};

pub enum Place {
    Sqlite(ScratchDir),
    Mongodb(ReplicaSet),
    Redis(RedisServer),
    Etcd(Etcd),
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
            Kind::Etcd => Self::Etcd(
                Etcd::start(EtcdOptions::three())
                    .await
                    .expect("a cluster of etcd"),
            ),
            Kind::Mongodb => Self::Mongodb(ReplicaSet::start(size).await.expect("a replica set")),
        }
    }

    /// A handle of its own, as another process would have.
    pub async fn store(&self) -> SharedStore {
        match self {
            Self::Sqlite(folder) => Arc::new(SqliteStore::open(folder.join("locks.db")).unwrap()),
            Self::Redis(server) => Arc::new(RedisStore::connect(&server.url()).await.unwrap()),
            Self::Etcd(etcd) => Arc::new(EtcdStore::connect(&etcd.url()).await.unwrap()),
            Self::Mongodb(set) => Arc::new(MongoStore::for_locks().connect(&set.uri()).await.unwrap()),
        }
    }
}
