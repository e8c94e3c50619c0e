//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod body;
mod bumps;
mod common;
mod effects;
mod endings;
mod gate;
mod header;
mod layer;
mod limits;
mod refusals;
