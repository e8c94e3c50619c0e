//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod certificates;
mod cluster;
mod common;
mod conformance;
mod connect;
mod demoted;
mod durability;
mod faults;
mod fence;
mod fence_bumps;
mod fence_marks;
mod looker;
mod machine;
mod memory;
mod quorum;
mod quorum_adopt;
mod quorum_at_once;
mod quorum_attempts;
mod quorum_certainty;
mod quorum_conformance;
mod quorum_late;
mod quorum_members;
mod quorum_purge;
mod quorum_purge_late;
mod quorum_remains;
mod quorum_silent;
mod quorum_watch;
mod quorum_wire;
mod quorum_wishes;
mod records;
mod records_alike;
mod secrets;
mod sentinels;
mod strange_names;
mod watches;
