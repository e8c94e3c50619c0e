//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod again;
mod duplicates;
mod etcd;
mod fault_proxy;
mod fault_proxy_bytes;
mod mariadb;
mod mongod;
mod nats;
mod network;
mod postgres;
mod process;
mod redis;
mod replica_set;
