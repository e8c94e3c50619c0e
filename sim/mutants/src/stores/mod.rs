//! Wrong statements of the real stores, each of which a test of its store must notice on a real server.
//!
//! A statement of SQL, a script of Lua, a pipeline of BSON and a transaction of etcd are not what the provers run: what they decide is
//! held by the conformance suite and by the stores' own tests. This is the proof that those would notice. One row at a time is planted
//! in a copy, as no statement can ask which bug is switched on; the store and its tests are built anew, and those that the row names run.
//!
//! What makes a verdict worth something:
//! - the same copy without a bug must pass the same tests;
//! - a catch is a test that says something wrong was answered. What does not compile, takes too long, crashes, has no server that
//!   answers, or leaves no test that passes, is an error of the row;
//! - the words of a row are found exactly once, or nothing runs.

mod build;
mod judge;
mod plant;
mod row;
mod rows;
mod run;
mod table;
mod trial;

pub use plant::check_store_rows;
pub use row::StoreRow;
pub use rows::store_rows;
pub use run::{StoreOptions, StoreOutcome, StoreProgress, StoreVerdict, run_stores};
pub use table::{STORES_TABLE, stores_table, write_stores_table};
