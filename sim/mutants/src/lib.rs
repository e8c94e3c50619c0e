//! Planted bugs, each of which the simulator or the model must catch: the proof of the proofs.
//!
//! A [`Row`] says which words of the shipped sources are replaced by which others, and why that is a bug. No
//! source has a hook for it: the bugs are planted in a **copy** of the needed crates, all of them at once,
//! each behind `crate::planted::is(number)`. The copy is built once, and its own `tenure-sim` runs once per
//! row with that row's number in the environment.
//!
//! A [`PartRow`] is the same for a crate that no prover runs, a store, a fence or the library: something
//! wrong in it, which a test of that crate must notice ([`run_parts`]).
//!
//! What makes a verdict worth something:
//! - the same copy with no bug switched on must be found clean, by both checkers, before any row counts;
//! - only the exit code [`VIOLATION_EXIT_CODE`] with a named invariant is a catch: a crash is an error;
//! - a row whose words are not found exactly once is an error, so that the table cannot rot in silence.

#![forbid(unsafe_code)]

mod build;
mod checker;
mod copy;
mod error;
mod manifest;
mod parts;
mod rewrite;
mod row;
mod rows;
mod run;
mod switch;
mod table;

pub use build::{build, test};
pub use checker::{Checked, VIOLATION_EXIT_CODE, check};
pub use copy::{Copy, copy};
pub use error::Error;
pub use parts::{
    PARTS_TABLE, Part, PartOptions, PartOutcome, PartProgress, PartRow, PartVerdict, check_part_rows,
    part_rows, parts_table, run_parts, write_parts_table,
};
pub use rewrite::{check_rows, rewrite};
pub use row::{Checker, Edit, Place, Row, Shape};
pub use rows::rows;
pub use run::{Form, Options, Outcome, Progress, Verdict, run};
pub use switch::SWITCH;
pub use table::{TABLE, places, table, write_table};
