//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod beside;
mod care;
mod care_arguments;
mod common;
mod deadline;
mod default_store;
mod doctor;
mod endpoint;
mod endpoint_crowd;
#[cfg(feature = "etcd")]
mod etcd;
mod fault;
mod fence;
mod fence_bumps;
mod fence_claims;
#[cfg(feature = "etcd")]
mod fence_counting;
#[cfg(feature = "etcd")]
mod fence_elsewhere;
mod fence_files;
#[cfg(all(feature = "mysql", feature = "postgres"))]
mod fence_looks;
mod fence_many;
mod fence_refusals;
mod flock;
mod gc;
mod health;
mod history;
mod hooks;
mod inherited;
mod interrupt;
mod kubernetes;
mod labels;
mod leaving;
mod leftovers;
mod linger;
mod lock;
mod log_page;
mod manager;
#[cfg(feature = "mongodb")]
mod mongodb;
#[cfg(feature = "mysql")]
mod mysql;
mod namespaces;
#[cfg(feature = "nats")]
mod nats;
mod nested;
mod nightly;
mod not_started;
mod output;
mod places;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_passwords;
mod priority;
#[cfg(feature = "postgres")]
mod readme;
#[cfg(feature = "redis")]
mod redis;
mod secrets;
mod signals;
mod step_down;
mod stopped;
mod store_away;
#[cfg(feature = "opentelemetry")]
mod telemetry;
mod terminal;
mod top;
mod trace;
mod turns;
mod under_systemd;
mod unit;
mod unkillable;
mod unread;
mod usage;
mod waits_in_vain;
mod warden;
mod watch;
