//! A TCP proxy on loopback whose faults are switched while it runs.

mod connection;
mod control;
mod fault;
mod frame;
mod http2;
mod mysql;
mod nats;
mod postgres;
mod redis;
mod replay;
mod server;

pub use fault::{Counts, Fault, RequestFault};
pub use server::FaultProxy;
