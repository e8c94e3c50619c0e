//! A store in memory that keeps the contract to the letter, for the suite to be checked with and for a
//! simulator to stand on.
//!
//! [`Records`] decides everything, and is pure: time is an argument. [`ModelStore`] puts a clock, a delay and
//! a watch around it. [`FlawedSubject`] is the same with one planted [`Defect`], to prove that the suite
//! notices.

mod clock;
mod defect;
mod flawed;
mod records;
mod rules;
mod store;
mod subject;
mod watch;

pub use clock::ModelClock;
pub use defect::Defect;
pub use flawed::FlawedSubject;
pub use records::{Record, Records, Slot};
pub use store::{DELAY, ModelStore, TRAITS_KIND};
pub use subject::ModelSubject;
