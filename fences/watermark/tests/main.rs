//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod claims;
mod crowds;
mod file;
mod places;
mod refusals;
