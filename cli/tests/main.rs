//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod care;
mod common;
mod deadline;
mod endpoint;
#[cfg(feature = "etcd")]
mod etcd;
mod fence;
mod gc;
mod history;
mod lock;
#[cfg(feature = "mongodb")]
mod mongodb;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "nats")]
mod nats;
mod output;
#[cfg(feature = "postgres")]
mod postgres;
mod priority;
#[cfg(feature = "redis")]
mod redis;
mod signals;
mod step_down;
#[cfg(feature = "opentelemetry")]
mod telemetry;
mod top;
mod trace;
mod turns;
mod unkillable;
mod warden;
