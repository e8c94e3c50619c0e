//! What is wrong in a crate that no prover runs: each a test of that crate must notice.
//!
//! A statement of SQL, a script of Lua, a pipeline of BSON and a transaction of etcd are not what the provers
//! run, nor are the fences and the library around the engine: what they decide is held by the conformance
//! suite and by the crates' own tests, on real servers. Of the core that is so where only the number of
//! requests differs. This is the proof that those would notice. One row at a time is planted in a copy, as no
//! statement can ask which bug is switched on; the crate and its tests are built anew, and those that the row
//! names run.
//!
//! What makes a verdict worth something:
//! - the same copy without a bug must pass the same tests;
//! - a catch is a test that says something wrong was answered. What does not compile, takes too long,
//!   crashes, has no server that answers, or leaves no test that passes, is an error of the row;
//! - the words of a row are found exactly once, or nothing runs.

mod build;
mod judge;
mod part;
mod plant;
mod row;
mod rows;
mod run;
mod table;
mod trial;

pub use part::Part;
pub use plant::check_part_rows;
pub use row::PartRow;
pub use rows::part_rows;
pub use run::{PartOptions, PartOutcome, PartProgress, PartVerdict, run_parts};
pub use table::{PARTS_TABLE, parts_table, write_parts_table};
