//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod certificates;
mod clean_up;
mod common;
mod conformance;
mod connect;
mod examination;
mod exchanged;
mod faults;
mod fence;
mod fence_bumps;
mod fence_endings;
mod fence_guards;
mod fence_history;
mod fence_marks;
mod fence_null;
mod fence_tables;
mod fence_xa;
mod galera;
mod groups;
mod killed_statement;
mod locked_rows;
mod locked_tables;
mod machine;
mod modes;
mod replicas;
mod sessions;
mod setup;
mod short_sessions;
mod short_statements;
mod short_way;
mod splitting;
mod watch;
