#![doc = include_str!("../README.md")]

#[cfg(not(target_os = "linux"))]
compile_error!("tenure-sqlite keeps time by CLOCK_BOOTTIME and is woken by inotify: it needs Linux");

mod acquire;
mod bell;
mod clock;
mod database;
mod decide;
mod ear;
mod examine;
mod fence;
mod files;
mod filesystem;
mod glances;
mod held;
mod insistence;
mod listing;
mod log;
mod look;
mod notifier;
mod only_path;
mod options;
mod patience;
mod place;
mod purge;
mod reactor;
mod record;
mod schema;
mod seat;
mod sighting;
mod store;
mod terms;
mod transaction;
mod trial;
mod trouble;
mod wake;
mod watch;

#[doc(hidden)]
pub mod fuzzing;

pub use fence::{FencedTable, SqliteFence};
pub use options::{MissingDirectory, SqliteOptions};
pub use store::SqliteStore;
pub use tenure_local::FileSystemTrust;

/// The library whose transactions a fence enters. No program can link two of its versions.
pub use rusqlite;
