//! What Tenure's stores at the other end of a connection share.
//!
//! - [`Remote`]: a [`LeaseStore`](tenure_core::LeaseStore) whose requests run on a thread of its own
//!   ([`OwnThread`]), over whatever implements [`Requests`]; [`lease_store!`] makes a public type of it.
//! - [`PurgeRequests`], [`lease_purge!`]: the same for [`LeasePurge`](tenure_core::LeasePurge).
//! - [`RemoteFence`]: the same for fences. Over [`Marks`], each of which is a row, it is a whole
//!   [`Fence`](tenure_core::Fence); [`fence!`] makes a public type of it.
//! - [`Noter`]: refusals of a fence on their way into the database.
//! - [`ReadWatch`], [`WatchPlaces`]: watches that are read there, and how many there may be.
//! - [`findings`]: what an examination says, and [`clock`]: how it compares clocks.
//! - [`Link`]: one connection that heals, dialled once for all who need it.
//! - [`TlsFiles`], [`read_certificates`], [`begin_of_file`], [`RenewedFiles`]: the files that a URL names, as
//!   those for TLS.
//! - [`is_emptied()`]: folders of the servers' machines that are no place for what must stay.
//! - [`url`]: what their URLs have in common.
//! - [`ClaimTurns`]: claims that wait for each other.
//! - [`TriedInVain`]: what those who stand in line learn of who was before them.
//! - [`Deed`], [`timed_out`], [`none_lets_in`], [`TlsWords`], [`line()`]: errors as the contract wants them.
//!
//! No store's user needs this crate; it promises nothing to others.

pub mod clock;
mod errors;
mod fence;
pub mod findings;
mod folders;
mod in_line;
mod link;
mod plain_file;
mod pulse;
mod purge;
mod refusals;
mod renewed_files;
pub mod shown;
mod store;
mod thread;
mod tls_files;
mod turns;
pub mod url;
mod watch;

pub use errors::{Deed, TlsWords, after_a_step, fence_subject, lease_subject, line, none_lets_in, timed_out};
pub use fence::{BumpSetUp, ClaimRow, MarkRow, Marks, RemoteFence, Sought, ruled};
pub use folders::is_emptied;
pub use in_line::TriedInVain;
pub use link::{Dial, Link, Open, Waiting};
pub use plain_file::begin_of_file;
pub use purge::PurgeRequests;
pub use refusals::{Noter, Notes, pause_between_rounds};
pub use renewed_files::RenewedFiles;
pub use store::{Remote, Requests};
pub use thread::{OwnThread, Running, System};
pub use tls_files::{TlsFiles, TlsParts, read_certificates};
pub use turns::ClaimTurns;
pub use watch::{ReadWatch, Told, WatchPlaces};

#[doc(hidden)]
pub use tenure_core;
