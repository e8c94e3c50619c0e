//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ages;
mod certificates;
mod clean_up;
mod cluster;
mod common;
mod conformance;
mod connect;
mod credentials;
mod edited;
mod examination;
mod exchanged;
mod faults;
mod fence;
mod fence_bumps;
mod fence_history;
mod fence_marks;
mod fence_order;
mod fence_reads;
mod full_disk;
mod limits;
mod next_server;
mod old_server;
mod one_cluster;
mod record_forms;
mod repeated;
mod rights;
mod watch;
