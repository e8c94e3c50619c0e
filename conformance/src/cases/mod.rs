//! The cases, by subject. Each is named after the behaviour that it checks, and fails by panicking.

pub mod acquire;
pub mod expiry;
pub mod release;
pub mod renew;
