//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod client;
mod commands;
mod common;
mod conformance;
mod connect;
mod database;
mod decisions;
mod dropped;
mod examination;
mod exchanged;
mod fail_points;
mod faults;
mod fence;
mod fence_bumps;
mod fence_documents;
mod fence_marks;
mod fence_refusals;
mod fence_statements;
mod indexes;
mod locked_records;
mod logins;
mod lone;
mod machine;
mod one_set;
mod purging;
mod records;
mod seen;
mod standalone;
mod tied;
mod unread_options;
mod watch;
