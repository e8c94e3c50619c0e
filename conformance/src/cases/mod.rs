//! The cases, by subject. Each is named after the behaviour that it checks, and fails by panicking.

pub mod acquire;
pub mod ask;
pub mod batch;
pub mod cancel;
pub mod clean_up;
pub mod expiry;
pub mod list;
pub mod race;
pub mod read;
pub mod release;
pub mod renew;
pub mod store;
pub mod text;
pub mod token;
pub mod unreadable;
pub mod watch;
