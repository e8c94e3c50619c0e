//! The shell of Tenure, under a scheduler that tries other orders.
//!
//! The files of the driver, of the election and of the term are compiled **here a second time, as they are**,
//! over this crate's own `sync` and `clock`: every channel, atomic, thread and look at the clock is then a
//! point at which [shuttle] may let another go first, time is virtual, and the store is a model in
//! memory. Nothing in the product knows of it.
//!
//! Each [`Scenario`] sets a race up and states what must hold in every order. See `main.rs` for the command.

#![forbid(unsafe_code)]
#![allow(unexpected_cfgs, reason = "features of the crate whose files these are")]
#![allow(
    dead_code,
    unused_imports,
    reason = "the callers of the shell are in its own crate and above it"
)]
#![allow(
    unreachable_pub,
    reason = "the files of the shell are public in their own crate"
)]

#[path = "../../src/claim.rs"]
mod claim;
mod clock;
#[path = "../../src/deadline.rs"]
mod deadline;
#[path = "../../src/driver/mod.rs"]
mod driver;
#[path = "../../src/election/mod.rs"]
mod election;
mod explore;
#[path = "../../src/held.rs"]
mod held;
mod identity;
#[path = "../../src/lock/mod.rs"]
mod lock;
#[path = "../../src/loss.rs"]
mod loss;
mod paced;
mod registry;
#[path = "../../src/release.rs"]
mod release;
mod scenarios;
mod site;
mod store;
mod sync;
#[path = "../../src/term.rs"]
mod term;

pub use explore::{Choice, Outcome, explore, replay};
pub use scenarios::{ALL, Scenario};

use election::Leadership;
use loss::Loss;
use release::ReleaseOutcome;
