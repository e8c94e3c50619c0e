//! tenure-sqlite
