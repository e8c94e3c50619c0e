//! The tests of this crate: one program, whose files wait side by side and are linked once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod attempts;
mod beats;
mod beats_apart;
mod chance;
mod deadline;
mod departure;
mod determinism;
mod endings;
mod extend;
mod fence;
mod harness;
mod heir;
mod max_hold;
mod observed;
mod observed_expiry;
mod observed_last_written;
mod observed_repeated;
mod observed_rounds;
mod observed_store;
mod releasing;
mod rename;
mod search;
mod shown;
mod telling;
mod timing;
mod timing_limits;
mod unheard;
mod waking;
mod words;
