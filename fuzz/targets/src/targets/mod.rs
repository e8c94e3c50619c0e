//! The targets: one function each, `judge(bytes)`, which panics when a promise is broken.

pub mod engine;

mod choices;
mod configuration;
#[cfg(feature = "mongodb")]
mod mongodb_record;
mod sqlite_record;
mod text;
mod url;

#[cfg(feature = "mongodb")]
pub use mongodb_record::TARGET as MONGODB_RECORD;
pub use {
    configuration::TARGET as CONFIGURATION, engine::TARGET as ENGINE, sqlite_record::TARGET as SQLITE_RECORD,
    url::TARGET as URL,
};

use crate::Target;

/// Every target that is compiled in.
pub const ALL: &[Target] = &[
    ENGINE,
    SQLITE_RECORD,
    #[cfg(feature = "mongodb")]
    MONGODB_RECORD,
    URL,
    CONFIGURATION,
];
