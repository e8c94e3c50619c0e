//! The cases, by subject. Each is named after the behaviour that it checks, and fails by panicking.

pub mod acquire;
pub mod ask;
pub mod batch;
pub mod expiry;
pub mod list;
pub mod read;
pub mod release;
pub mod renew;
pub mod text;
