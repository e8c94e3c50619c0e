//! Tenure elects exactly one process to do a job, over the store a team already runs, and gives the elected
//! process a **fencing token** that the data path checks.
//!
//! | who wants | begins at |
//! |---|---|
//! | one of several processes to do a job, once or for ever | [`Election`] |
//! | locks, one or many thousands | [`LockManager`] |
//! | to watch who leads or has a lock, without taking part | [`Observer::of`]; once: [`LockManager::holder`] |
//! | a store by its URL | [`Registry::connect`]; [`Registry::connect_within`] waits for one that is away |
//! | late writes to be refused | a [`Fence`]: [`Leadership::claim`], [`Lock::claim`] |
//!
//! What is awaited needs a tokio runtime with its I/O and time drivers; renewals run on a thread of their
//! own.
//!
//! Authority is advice: a process can be paused between asking and acting. The fence is the guarantee. What
//! is promised, under which assumptions, and which test checks it, is in `GUARANTEES.md` at the root of
//! Tenure's repository, beside `STORES.md`, which says what each store is worth.
//!
//! # Lead
//!
//! Every copy of a service may run this each night. One settles; the others wait for their turn, and find it
//! done. A lease lets one run at a time: that the night is settled already only the data can know, and so it
//! is noted there, in the transaction that settles.
//!
//! ```
//! use tenure::sqlite::{SqliteFence, rusqlite::Connection};
//! use tenure::{Election, Leases, Registry, ResourceName};
//!
//! type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
//!
//! # fn main() -> Outcome<()> {
//! # let scratch = tempfile::tempdir()?;
//! # std::env::set_current_dir(&scratch)?;
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! // Once, where the ledger is made:
//! let connection = Connection::open("ledger.db")?;
//! connection.execute_batch(
//!     "CREATE TABLE account (id INTEGER PRIMARY KEY, cents INTEGER);
//!      INSERT INTO account VALUES (1, 100);
//!      CREATE TABLE settled (night TEXT PRIMARY KEY)",
//! )?;
//! SqliteFence::install(&connection)?;
//!
//! // Each night, in every copy:
//! async fn nightly(night: &str) -> Outcome<()> {
//!     let store = Registry::connect("sqlite:leases.db").await?;
//!     let fence = SqliteFence::new("ledger.db", Leases::Elsewhere)?;
//!     let ledger = ResourceName::new("ledger")?;
//!     let election = Election::builder("nightly-settlement", store).build()?;
//!     let leadership = election.campaign().await?;
//!     // First claim, then read: from here on, no older leader can enter.
//!     leadership.claim(&fence, &ledger).await?;
//!     let term = leadership.term();
//!     leadership
//!         .guard(async {
//!             // The work, dropped when the term is lost.
//!             let mut connection = Connection::open("ledger.db")?;
//!             let transaction = connection.transaction()?;
//!             // First in every transaction that writes: it refuses a stale term.
//!             fence.enter(&transaction, &ledger, &term)?;
//!             let note = "INSERT INTO settled VALUES (?1) ON CONFLICT DO NOTHING";
//!             if transaction.execute(note, [night])? == 1 {
//!                 transaction.execute("UPDATE account SET cents = cents + 5 WHERE id = 1", [])?;
//!             }
//!             transaction.commit()?;
//!             Outcome::Ok(())
//!         })
//!         .await??;
//!     leadership.step_down().await;
//!     Ok(())
//! }
//!
//! // As three copies do:
//! for _copy in 1..=3 {
//!     nightly("2026-11-28").await?;
//! }
//! let cents: i64 = connection.query_row("SELECT cents FROM account", [], |row| row.get(0))?;
//! assert_eq!(cents, 105);
//! # Outcome::Ok(())
//! # })
//! # }
//! ```
//!
//! [`Election::run`] does the same, and campaigns again when the term is lost. It ends when the work has
//! ended, also with an error: for ever, call it in a loop, with [a pause that grows](Election::run).
//!
//! # Lock
//!
//! A lock is a lease, too, with a token of its own. One manager holds up to 100,000, and extends them all
//! together.
//!
//! ```no_run
//! use std::time::Duration;
//! use tenure::{LockManager, Registry};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let store = Registry::connect("sqlite:/var/lib/app/locks.db").await?;
//! let manager = LockManager::builder(store).owner_tag("billing").build()?;
//! let mut lock = manager.try_lock_for("orders/7", Duration::from_secs(12)).await?;
//! // The work is dropped when the lock is lost. Each of its transactions enters a fence with lock.term().
//! lock.guard(async { println!("paying order 7") }).await?;
//! lock.release().await;
//! manager.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # End at SIGTERM
//!
//! Drop the work first, then close: another leads at once. `process::exit` gives nothing back, and the others
//! wait until the lease has ended.
//!
//! ```no_run
//! use std::time::Duration;
//! use tenure::{Election, Registry, Term};
//! use tokio::signal::unix::{SignalKind, signal};
//!
//! # async fn settle(term: Term) {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let mut terminated = signal(SignalKind::terminate())?;
//! // A program that is started in an outage waits for the store, for five minutes here, and ends at a signal
//! // also then.
//! let store = tokio::select! {
//!     store = Registry::connect_within("postgres://db1/jobs", Duration::from_secs(300)) => store?,
//!     _ = terminated.recv() => return Ok(()),
//! };
//! let election = Election::builder("nightly-settlement", store).build()?;
//! // For `tenure history`, which otherwise shows no terms of this program.
//! let history = tokio::spawn(election.keep_history());
//! tokio::select! {
//!     outcome = election.run(|leadership| settle(leadership.term())) => outcome?,
//!     _ = terminated.recv() => {}
//! }
//! // What did not end is dropped by now. This waits until the lease is given back, for a ttl at most.
//! election.close().await;
//! // It would not end while there is a `Leadership`: whoever campaigns in place of `run` drops that first.
//! history.await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Good to know
//!
//! - [`Leadership`] and [`Lock`] keep the lease: hold them for as long as the work goes on. A [`Term`] alone
//!   keeps nothing.
//! - [`Election::campaign`] waits for a term; [`Election::try_campaign`] says who leads if it is not this
//!   process. Dropping the `Leadership` releases the lease. A release that fails is sent again until the
//!   lease has expired by itself, about a ttl later; [`Election::events`] tells the reason at once
//!   ([`Event::ReleaseFailed`]).
//! - `authority()` says `Ending` where somebody wants another to lead: end the work and step down. After
//!   `Doubtful` a renewal may still succeed. It reads a clock that goes on while the machine sleeps.
//! - Renewals run on a thread of Tenure's own, so blocked user code cannot starve them. What you install for
//!   `tracing` and `metrics` is called there, and must not block: give a log that may wait for its reader a
//!   thread of its own.
//! - The feature `metrics` tells a recorder of `metrics` 0.24, and one of another version nothing. Have it
//!   make histograms: the module `metrics` shows how.
//! - A fence speaks in its driver's types, which its module hands out, as `tenure::sqlite::rusqlite`:
//!   `rusqlite` 0.41, `tokio-postgres` 0.7, `mysql_async` 0.37, `mongodb` 3.9 with `bson-3`. SQLite's C
//!   library is compiled in, and must not be linked twice. With another driver of PostgreSQL or MySQL (sqlx,
//!   diesel) call `SELECT tenure.enter($1, $2, $3)` or `CALL tenure_enter_1(?, ?, ?)` first in each
//!   transaction. The connection that you enter on is the driver's: it takes none of the options that are
//!   Tenure's own (`schema=`, `listen=`), and TLS and passwords as the driver does. `tokio-postgres` reads
//!   neither `~/.pgpass` nor `PGPASSWORD`.
//! - `PostgresStore::init` and `MysqlStore::init` do what `tenure store init` does.
//! - Locks: [`Lock::claim`] comes before the work reads. [`LockManager::owner`] makes owners that never wait
//!   for themselves. [`LockManager::holder`] says who has a lock, [`Lock::predecessor`] whether the one
//!   before died with it. A lock that is held takes no file descriptor; each `guard`, `lost` or `doubted`
//!   takes one while it is awaited.
//!
//! # Features
//!
//! A feature compiles a store in, or adds something; it never changes behaviour. [`Registry`] knows the URLs
//! of the stores that are compiled in.
//!
//! | feature | brings | by URLs that begin with |
//! |---|---|---|
//! | `sqlite`, the default | SQLite: a file, for the processes of one machine | `sqlite:` |
//! | `postgres` | PostgreSQL | `postgres://`, `postgresql://` |
//! | `mysql` | MySQL and MariaDB | `mysql://`, `mariadb://` |
//! | `mongodb` | MongoDB | `mongodb://`, `mongodb+srv://` |
//! | `redis` | Redis or Valkey: a server, | `redis://`, `rediss://`, |
//! | | one that sentinels choose, | `redis+sentinel://`, `rediss+sentinel://`, |
//! | | or several, of which most must agree | `redis+quorum://`, `rediss+quorum://` |
//! | `etcd` | etcd | `etcd://`, `etcds://` |
//! | `nats` | NATS JetStream | `nats://`, `nats+tls://` |
//! | `http` | the fence over HTTP: a header, and a layer of `tower` | |
//! | `metrics` | figures of all elections, locks and fences, for the crate `metrics` | |
//! | `trace` | `ElectionBuilder::trace`: each step of an election in a file, to be replayed | |
//!
//! # From the command to the library
//!
//! | option of `tenure run` or `tenure lock` | here |
//! |---|---|
//! | `--store` | [`Registry::connect_within`] |
//! | `--ttl`, `--renew`, `--grace` of `tenure run` | [`TimingOptions`] for [`ElectionBuilder::timing`] |
//! | `--ttl`, `--renew` of `tenure lock` | [`LockTimingOptions`] for [`LockManagerBuilder::timing`]; the grace of a manager's locks is always a sixth of the ttl |
//! | `--candidate`, `--note` | the methods of this name of [`ElectionBuilder`] and [`LockManagerBuilder`] |
//! | `--wait` | [`LockManager::try_lock_for`]; of a campaign a time-out of the runtime's: to drop its future is to withdraw |
//! | `--no-wait` | [`Election::try_campaign`], [`LockManager::try_lock`] |
//! | `--once` | [`Election::campaign`], and [`Leadership::guard`] for the work |
//! | `--keep` | [`Election::run`] |
//! | `--keep --restart always`, `--cooldown` | [`Election::run`] in a loop, with [a pause](Election::run) |
//! | `--fair` | [`LockManagerBuilder::fairness`] |
//! | `--priority` | [`LockManagerBuilder::priority`]; for an election [`LockManager::turn`] before it campaigns |
//! | `--heartbeat-file`, `--heartbeat-within` | [`Leadership::progress`], [`ElectionBuilder::progress_within`] |
//! | `--metrics` | the feature `metrics`, and a recorder of your choice |
//! | `--trace` | the feature `trace` |
//!
//! What is missing there is the command's alone. `tenure history` shows the terms of an election of this
//! crate where the program spawns [`Election::keep_history`], and those of locks never.
//!
//! # Other names
//!
//! What the signatures here say is at the root. For whoever writes a store or a fence, or reads what
//! happened, [`contract`] has the words of both contracts, and of events. For programs that look after the
//! leases of others, as the command does, [`tooling`] has who led when, and who waits.

#![forbid(unsafe_code)]

mod bound;
mod claim;
mod clock;
pub mod contract;
mod deadline;
#[cfg(test)]
mod deadline_tests;
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
pub mod tooling;

pub use clock::now as clock_now;
pub use clock::sleep_until;
pub use election::{
    BuildError, CampaignError, Election, ElectionBuilder, Leadership, Observation, Observer, PATIENCE_AT_DROP,
};
pub use lock::{
    Fairness, LOCKS_MAX, Lock, LockError, LockManager, LockManagerBuilder, LockOwner, LockTiming,
    LockTimingOptions, MAX_HOLD_MIN, OwnerTag, Reentrancy, Turn,
};
pub use loss::Loss;
pub use registry::{Registry, SharedStore};
pub use release::ReleaseOutcome;
pub use tenure_core::{
    Answer, Attempt, Authority, Bump, Candidate, CandidateId, Cause, Certainty, Claimed, Cursor, Departure,
    End, Event, Fault, Fence, FenceError, FencingToken, Grant, Horizon, Incarnation, Lease, LeaseName,
    LeasePurge, LeaseStore, Leases, ListedMark, Mark, MarkPage, Moment, NameError, NameFault, Note,
    NoteTooLong, Occupancy, Predecessor, Priority, PriorityError, Promises, Released, ResourceName,
    StoreError, Term, Timing, TimingError, TimingOptions, TokenError, Ttl, TtlError, Violation,
};
pub use tenure_watermark::{Admission, FileSystemTrust, Watermark, WatermarkView};

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
#[cfg(all(doctest, feature = "postgres"))]
#[doc = include_str!("../../README.md")]
struct Readme;
