//! The real engine over model stores in virtual time.
//!
//! A seed is a [`Plan`]: candidates, timings, a store with its habits, a calendar of faults. A world runs it
//! with the real [`Engine`](tenure_core::Engine)s in one thread, one queue, and time that costs nothing;
//! every law in [`invariants`] watches. [`Campaign`] runs many seeds, [`replay`] runs one and tells it,
//! [`shrink`] finds the few faults that a violation needs.

#![forbid(unsafe_code)]

mod campaign;
mod chance;
mod faults;
pub mod invariants;
mod narrate;
mod outcome;
pub mod plan;
pub mod register;
mod replay;
mod shrink;
mod sometimes;
mod stores;
mod world;

pub use campaign::{Campaign, CampaignOptions, Floor, Target, Totals};
pub use chance::Chance;
pub use faults::{FaultCounts, FaultKind, TERMS_PER_FAULT};
pub use narrate::Narrator;
pub use outcome::{Outcome, Violation};
pub use plan::{Edit, Plan};
pub use replay::{determinism, replay};
pub use shrink::{Shrunk, shrink};
pub use sometimes::{Sights, Sometimes};
