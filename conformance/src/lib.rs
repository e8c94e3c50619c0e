//! One suite of named cases that every store of Tenure passes, on the real server.
//!
//! A store author implements [`Subject`] once and writes one line:
//!
//! ```
//! use tenure_conformance::{Fixture, model::ModelSubject};
//!
//! async fn fixture() -> Fixture {
//!     Fixture::new(ModelSubject::new())
//! }
//!
//! tenure_conformance::suite!(fixture);
//! # fn main() {}
//! ```
//!
//! That expands to one test per case, under the case's own name. [`CASES`] lists them all; a case that is
//! added there is run by every store from then on. [`model`] holds a store in memory that keeps the contract
//! to the letter, and the planted defects that prove the suite: each of them is caught by a case. `wire` asks
//! the same of every store behind a proxy that loses and repeats its requests.

mod cases;
mod client;
mod contender;
mod fixture;
mod list;
mod mixture;
mod page;
mod run;
mod slowness;
mod subject;
mod suite;

pub mod asking;
#[cfg(feature = "wire")]
pub mod certificates;
pub mod filling;
#[cfg(feature = "wire")]
pub mod logins;
pub mod marks;
pub mod model;
pub mod observed;
pub mod register;
pub mod stepping;
#[cfg(feature = "wire")]
pub mod strangers;
#[cfg(feature = "wire")]
pub mod terms;
#[cfg(feature = "wire")]
pub mod wire;

pub use client::Client;
pub use contender::Contender;
pub use fixture::{Fixture, Snapshot};
pub use list::CASES;
pub use run::{CASE_TIME_MAX, Case, CaseFunction, case, run};
pub use subject::{Corruption, Hooked, Subject};
