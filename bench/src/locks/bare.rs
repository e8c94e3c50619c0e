//! What the figures of locks are compared with.

use super::place::Place;
use crate::store::{etcd, mongodb, mysql, nats, postgres, redis, sqlite};

/// The least that takes a lease and gives it back, by the driver alone.
pub enum Bare {
    Sqlite(Box<sqlite::Bare>),
    Mongodb(mongodb::Bare),
    Redis(Box<redis::Bare>),
    RedisQuorum(redis::BareQuorum),
    Etcd(etcd::Bare),
    Postgres(postgres::Bare),
    Mysql(Box<mysql::Bare>),
    Nats(nats::Bare),
}

impl Bare {
    pub async fn turn(&mut self, round: u32) {
        match self {
            Self::Sqlite(bare) => bare.turn(),
            Self::Redis(bare) => bare.turn(round).await,
            Self::RedisQuorum(bare) => bare.turn(round).await,
            Self::Etcd(bare) => bare.turn().await,
            Self::Postgres(bare) => bare.turn(i64::from(round)).await,
            Self::Mysql(bare) => bare.turn(round).await,
            Self::Nats(bare) => bare.turn(round).await,
            Self::Mongodb(bare) => bare.turn(i64::from(round)).await,
        }
    }

    /// On the server of `place`, with a record of its own; SQLite's in a file of its own.
    pub async fn beside(place: &Place) -> Self {
        match place {
            Place::Sqlite(folder) => Self::Sqlite(Box::new(sqlite::Bare::open(&folder.join("bare.db")))),
            Place::Redis(server) => Self::Redis(Box::new(redis::Bare::connect(&server.url()).await)),
            Place::RedisQuorum(five) => Self::RedisQuorum(redis::BareQuorum::connect(five).await),
            Place::Etcd(etcd) => Self::Etcd(etcd::Bare::connect(&etcd.address(0)).await),
            Place::Postgres(server) => Self::Postgres(postgres::Bare::connect(&server.uri()).await),
            Place::Mysql(server) => Self::Mysql(Box::new(mysql::Bare::connect(&server.uri_of("jobs")).await)),
            Place::Nats(server) => Self::Nats(nats::Bare::connect(&server.url()).await),
            Place::Mongodb(set) => Self::Mongodb(mongodb::Bare::connect(&set.uri()).await),
        }
    }
}
