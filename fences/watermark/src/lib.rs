//! Tenure's fence inside a process: a mark per resource, in memory or kept in a file.
//!
//! For whatever a process guards itself: a service that takes writes from leaders, a cache, a device, a file.
//! What it promises and what not: [`Watermark`].

#![forbid(unsafe_code)]

mod admission;
mod disk;
mod file;
mod gate;
mod lock;
mod ownership;
mod place;
mod saver;
mod view;
mod watermark;
mod writer;

pub use admission::Admission;
pub use gate::CLAIM_WAIT_MAX;
pub use tenure_local::FileSystemTrust;
pub use view::WatermarkView;
pub use watermark::{OPEN_WAIT_MAX, RESOURCES_MAX, Watermark};
