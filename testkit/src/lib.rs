//! Real servers, real processes and real faults for Tenure's tests and examples.
//!
//! Nothing here is a simulation: a test that needs MongoDB gets a `mongod` of its own on a free loopback
//! port, and whatever a test starts is killed with the test, also when it panics and also when it is killed
//! itself.
//!
//! | Need | Use |
//! |---|---|
//! | a MongoDB server, with or without authentication | [`Mongod`] |
//! | a MongoDB replica set, whose nodes can be killed, frozen and restarted | [`ReplicaSet`] |
//! | a Redis or Valkey server, alone, as a replica or in a cluster | [`RedisServer`] |
//! | a Redis primary with a replica and three sentinels | [`RedisSentinels`] |
//! | a Redis Cluster of three primaries with a replica each | [`RedisCluster`] |
//! | a NATS server with JetStream, alone or three in a cluster | [`NatsServer`], [`NatsCluster`] |
//! | a PostgreSQL server that can be killed, frozen and restarted | [`Postgres`] |
//! | a pooler in front of it | [`PgBouncer`] |
//! | an etcd, alone or a cluster of three, whose members can be killed, frozen and restarted | [`Etcd`] |
//! | a MariaDB server, or a MySQL in its place, that can be killed, frozen and restarted | [`Mariadb`] |
//! | a network that delays, cuts, swallows and repeats | [`FaultProxy`] |
//! | servers of a cluster that are cut from each other | [`Network`] |
//! | a host that is gone | [`VanishedHost`] |
//! | a file system that a program serves | [`served_by_a_program`] |
//! | a disk that fails to sync | [`on_a_disk_that_fails_to_sync`] |
//! | a clock that is ahead | [`on_a_clock_that_is_ahead`] |
//! | a program under test | [`Process`] |
//! | a folder that is gone afterwards | [`ScratchDir`] |
//! | a port nobody else takes | [`free_port`] |
//! | what a program logs as a warning | [`Warnings`] |
//! | waiting for something, with an end | [`eventually`], [`eventually_async`], [`in_one_of`] |
//!
//! # Installing the servers
//!
//! `cargo run -p tenure-testkit --bin testkit -- fetch`, once, see [`fetch`]. A test that misses a server
//! fails and names that command. It never passes by skipping.
//!
//! # Sync and async
//!
//! Talking to a server is `async`, and works on any executor, since it runs on a runtime of the kit. From
//! code without an executor, use [`block_on`]. Everything else (killing, freezing, files, ports) is plain
//! code.
//!
//! Linux only: the guards lean on the parent-death signal and on `/proc`.

mod certificate;
mod clock;
mod disk;
mod error;
mod eventually;
pub mod fetch;
mod fuse;
mod layout;
mod network;
mod ports;
mod process;
mod proxy;
mod runtime;
mod scratch;
mod servers;
mod vanished;
mod warnings;

pub use certificate::SelfSigned;
pub use clock::on_a_clock_that_is_ahead;
pub use disk::on_a_disk_that_fails_to_sync;
pub use error::Error;
pub use eventually::{Attempt, eventually, eventually_async, in_one_of};
pub use fuse::served_by_a_program;
pub use layout::{FETCH_COMMAND, is_left_out, servers_dir};
pub use network::{Cut, Network};
pub use ports::free_port;
pub use process::{Line, Process, Stream, is_alive};
pub use proxy::{Counts, Fault, FaultProxy, RequestFault};
pub use runtime::block_on;
pub use scratch::ScratchDir;
pub use servers::{
    Etcd, EtcdOptions, Mariadb, Members, Mongod, NatsCluster, NatsOptions, NatsServer, PgBouncer, Postgres,
    RedisBuild, RedisCluster, RedisOptions, RedisSentinels, RedisServer, ReplicaSet, ServerClock, Size,
    SqlFamily, User, etcd_program, mariadb_program, mongod_program, nats_program, nft_command,
    pgbouncer_program, postgres_programs, redis_program, with_postgres_programs,
};
pub use vanished::VanishedHost;
pub use warnings::Warnings;
