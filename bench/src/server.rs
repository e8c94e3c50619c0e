//! The server that a figure is measured on.

use clap::ValueEnum;
use std::any::Any;
use tenure_testkit::{
    Etcd, EtcdOptions, Mariadb, NatsOptions, NatsServer, Postgres, RedisOptions, RedisServer, ReplicaSet,
    ScratchDir, Size,
};

/// On which store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// A file on this machine's disk.
    Sqlite,
    /// A replica set of three.
    Mongodb,
    /// One server.
    Postgres,
    /// One MariaDB.
    Mysql,
    /// One server that has each write on disk before it confirms it.
    Redis,
    /// A quorum of five independent servers that have each write on disk before they confirm it.
    RedisQuorum,
    /// A cluster of three.
    Etcd,
    /// One server.
    Nats,
}

/// It runs, or lies there, for as long as this lives.
pub struct Server {
    url: String,
    _running: Box<dyn Any>,
}

impl Server {
    pub async fn start(kind: Kind) -> Self {
        let (url, running): (String, Box<dyn Any>) = match kind {
            Kind::Sqlite => {
                let folder = ScratchDir::new("bench-server");
                (
                    format!("sqlite://{}", folder.join("leases.db").display()),
                    Box::new(folder),
                )
            }
            Kind::Mongodb => {
                let set = ReplicaSet::start(Size::Three)
                    .await
                    .expect("three nodes of mongod");
                (set.uri(), Box::new(set))
            }
            Kind::Postgres => {
                let server = Postgres::start().await.expect("a PostgreSQL server");
                tenure::postgres::PostgresStore::init(&server.uri())
                    .await
                    .expect("its schema");
                (server.uri(), Box::new(server))
            }
            Kind::Mysql => {
                let server = Mariadb::start().await.expect("a MariaDB server");
                server.execute("CREATE DATABASE jobs").await.expect("a database");
                tenure::mysql::MysqlStore::init(&server.uri_of("jobs"))
                    .await
                    .expect("its tables");
                (server.uri_of("jobs"), Box::new(server))
            }
            Kind::Redis => {
                let server = RedisServer::start(RedisOptions::durable())
                    .await
                    .expect("a Redis server");
                (server.url(), Box::new(server))
            }
            Kind::RedisQuorum => {
                let five = redis_quorum().await;
                (quorum_url(&five), Box::new(five))
            }
            Kind::Etcd => {
                let cluster = Etcd::start(EtcdOptions::three())
                    .await
                    .expect("a cluster of etcd");
                (cluster.url(), Box::new(cluster))
            }
            Kind::Nats => {
                let server = NatsServer::start(NatsOptions::default())
                    .await
                    .expect("a NATS server");
                (server.url(), Box::new(server))
            }
        };
        Self {
            url,
            _running: running,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Five servers that know nothing of each other.
pub async fn redis_quorum() -> Vec<RedisServer> {
    let mut five = Vec::new();
    for _ in 0..5 {
        let server = RedisServer::start(RedisOptions::durable()).await;
        five.push(server.expect("a Redis server"));
    }
    five
}

/// As one store.
pub fn quorum_url(servers: &[RedisServer]) -> String {
    let addresses: Vec<String> = servers.iter().map(RedisServer::address).collect();
    format!("redis+quorum://{}", addresses.join(","))
}
