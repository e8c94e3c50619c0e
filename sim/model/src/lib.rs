//! Every reachable state of the real engine, breadth first.
//!
//! A [`Model`] drives `tenure_core::Engine`, as it ships, for two or three candidates over one lease record,
//! and tries everything that can happen, in every order. Time has no horizon: moments are told relative to
//! each process's own now, tokens and attempts by their order, and what is past is forgotten, so that the
//! states are finite and the search ends. The shortest way to a broken [`Invariant`] is told as a [`Trace`].
//!
//! # What can happen
//! - The store's clock and every process's clock move by ticks, each by itself, at most one tick apart: in
//!   any time, however long, a clock may gain or lose one tick. The margin of the [timing](Configuration) is
//!   just that.
//! - A request arrives at the store at any time, or never; it may be applied once more later
//!   ([`Feature::Duplicates`]); its answer arrives at any time, or never, and also after it was given up.
//! - Processes are told to campaign, withdraw, step down; work ends; processes die and start anew; operators
//!   vacate a lease; a fence is claimed, read and written under, by work that looks at no clock.
//!
//! # Why it is so fast
//! A candidate with its messages is one of a few ten thousand situations. Each is numbered, and what the
//! engine does in it is worked out once ([the real `step` runs](Report::steps) only then); a state of the
//! whole is three such numbers and the record, 128 bits. The set of visited states holds all of them: nothing
//! rests on a hash.
//!
//! # What it does not prove
//! More candidates than configured, more late messages at a time, more than one former process of a candidate
//! whose messages are still under way, engines that are woken later than
//! [`overdue_max`](Configuration::overdue_max), pauses between the shortest and the longest that chance can
//! draw where lateness does not cover them, several leases in one engine. The store is the one of
//! `tenure_conformance`, whose clock is right.

#![forbid(unsafe_code)]

mod canonical;
mod catalogue;
mod configuration;
mod expand;
mod fence;
mod hash;
mod invariant;
mod judge;
mod label;
mod liveness;
mod local;
mod message;
mod milestone;
mod model;
mod names;
mod record;
mod search;
mod sweep;
mod trace;
mod visited;
mod world;

pub use configuration::{CANDIDATES_MAX, Configuration, Feature};
pub use invariant::Invariant;
pub use liveness::{LEADS_WITHIN_TICKS, Liveness};
pub use milestone::{Milestone, Milestones};
pub use model::Model;
pub use record::Flaw;
pub use search::{Limits, Progress, Report};
pub use trace::Trace;
