//! Tenure elects exactly one process to do a job, over the store a team already runs, and gives the elected
//! process a **fencing token** that the data path checks.
//!
//! ```no_run
//! use tenure::{Election, Registry, ResourceName, sqlite::SqliteFence};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let store = Registry::connect("sqlite:/var/lib/app/leases.db").await?;
//! let (fence, ledger) = (SqliteFence::new("/var/lib/app/ledger.db")?, ResourceName::new("ledger")?);
//! let election = Election::builder("nightly-settlement", store).build()?;
//! let leadership = election.campaign().await?;
//! // First claim, then read: whatever an older leader still writes is refused from here on.
//! leadership.claim(&fence, &ledger).await?;
//! let term = leadership.term();
//! leadership
//!     .guard(async {
//!         // The work, dropped when the term is lost. Each transaction enters: fence.enter(&transaction, &ledger, &term)?
//!         println!("settling as {term}");
//!     })
//!     .await?;
//! leadership.step_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! What is awaited needs a tokio runtime with its I/O and time drivers; renewals run on a thread of their own.
//!
//! Authority is advice: a process can be paused between asking and acting. The fence is the guarantee. See
//! `GUARANTEES.md` for what is promised, under which assumptions, and which test checks it.

#![forbid(unsafe_code)]

mod bound;
mod clock;
mod deadline;
mod driver;
mod election;
mod held;
mod history;
mod identity;
mod lock;
mod loss;
#[cfg(feature = "metrics")]
pub mod metrics;
mod opening;
#[cfg(feature = "trace")]
mod recording;
mod registry;
mod release;
mod sync;
mod term;

pub use clock::now as clock_now;
pub use clock::sleep_until;
pub use election::{
    BuildError, CampaignError, Election, ElectionBuilder, Leadership, Observation, Observer, PATIENCE_AT_DROP,
};
pub use history::{History, NotedTerm, PastTerm, TERMS_KEPT};
pub use identity::{candidate, default_candidate_id};
pub use lock::{
    Fairness, LOCKS_MAX, Lock, LockError, LockManager, LockManagerBuilder, LockOwner, LockTiming,
    LockTimingOptions, MAX_HOLD_MIN, OwnerTag, Reentrancy, Standby, Turn,
};
pub use loss::Loss;
pub use registry::{Registry, SharedPurge, SharedStore};
pub use release::ReleaseOutcome;
pub use tenure_core as core;
pub use tenure_core::{
    Answer, Attempt, Authority, Bump, Candidate, CandidateId, Cause, Certainty, Claimed, Cursor, Departure,
    End, Event, Fault, Fence, FenceError, FencingToken, Grant, Horizon, Incarnation, Lease, LeaseName,
    LeasePurge, LeaseStore, ListedMark, Mark, MarkPage, Moment, NameError, NameFault, Note, NoteTooLong,
    Occupancy, Predecessor, Priority, PriorityError, Promises, Released, ResourceName, StoreError, Term,
    Timing, TimingError, TimingOptions, TokenError, Ttl, TtlError, Violation,
};
pub use tenure_watermark::{Admission, Watermark, WatermarkView};

#[cfg(feature = "etcd")]
pub use tenure_etcd as etcd;
#[cfg(feature = "http")]
pub use tenure_http as http;
#[cfg(feature = "mongodb")]
pub use tenure_mongodb as mongodb;
#[cfg(feature = "mysql")]
pub use tenure_mysql as mysql;
#[cfg(feature = "nats")]
pub use tenure_nats as nats;
#[cfg(feature = "postgres")]
pub use tenure_postgres as postgres;
#[cfg(feature = "redis")]
pub use tenure_redis as redis;
#[cfg(feature = "sqlite")]
pub use tenure_sqlite as sqlite;
#[cfg(feature = "trace")]
pub use tenure_trace as trace;

/// The README's program is compiled, so that it cannot rot.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../README.md")]
struct Readme;
