//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod check;
mod common;
mod merge;
mod out_of_turn;
mod replay;
mod write;
