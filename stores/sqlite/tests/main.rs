//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod busy_writers;
mod common;
mod conformance;
mod examination;
mod fence;
mod fence_bumps;
mod fence_marks;
mod fence_refusals;
mod fenced_table;
mod file_systems;
mod first_opening;
mod frozen;
mod full_disk;
mod hostile_files;
mod many_processes;
mod moved_files;
mod other_boots;
mod other_paths;
mod places;
mod purging;
mod removed_logs;
mod sharing;
mod time_namespaces;
mod unsynced_disk;
mod watching;
mod watching_scarce;
