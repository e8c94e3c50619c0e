//! What Tenure's store and fence in a file of this machine share: what is to be known of the place before it
//! is trusted.
//!
//! - [`FileSystem`]: which one holds the file, and [`FileSystemTrust`]: which are taken.
//! - [`is_mount`]: whether the file itself was mounted, so that it is another file's second path.
//!
//! No user needs this crate; it promises nothing to others.

#![forbid(unsafe_code)]

mod file_system;
mod mount;

pub use file_system::{FileSystem, FileSystemTrust};
pub use mount::is_mount;
