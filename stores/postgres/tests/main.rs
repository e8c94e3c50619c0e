//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod announced;
mod batches;
mod clean_up;
mod common;
mod conformance;
mod connect;
mod dial;
mod encryption;
mod examination;
mod example;
mod exchanged;
mod faults;
mod fence;
mod fence_bumps;
mod fence_guards;
mod fence_history;
mod fence_marks;
mod left_open;
mod locked_rows;
mod machine;
mod meddling;
mod notifiers;
mod one_cluster;
mod partition;
mod pooler;
mod pooler_crossing;
mod pooler_listening;
mod prepared;
mod quick;
mod search_path;
mod setup;
mod setup_beside;
mod standbys;
mod subscriptions;
mod turnstile;
