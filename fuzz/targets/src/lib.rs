//! Fuzz targets of everything that reads what others wrote, and a finder for them.
//!
//! A [`Target`] is a function of bytes that panics when it finds something. The same functions run three
//! ways: as tests over the corpora, by the seeded finder of the `tenure-fuzz` command on the stable compiler,
//! and guided by coverage under `cargo fuzz` (`fuzz/libfuzzer`).

#![forbid(unsafe_code)]

mod campaign;
mod corpus;
mod finding;
mod mutator;
mod target;

pub mod command;
pub mod targets;

pub use campaign::{Effort, Found, Outcome, run};
pub use corpus::Corpus;
pub use finding::{Finding, execute};
pub use mutator::Mutator;
pub use target::{INPUT_BYTES_MAX, Target};
