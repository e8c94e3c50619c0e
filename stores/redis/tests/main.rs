//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
mod conformance;
mod connect;
mod faults;
mod fence;
mod machine;
mod quorum;
mod quorum_attempts;
mod quorum_conformance;
mod quorum_late;
mod records;
mod secrets;
