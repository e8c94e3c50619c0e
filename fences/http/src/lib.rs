#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod body;
mod client;
mod completion;
mod gate;
mod header;
mod layer;
mod problem;
mod protection;
mod refusal;
mod service;
mod tally;

pub use body::FencedBody;
pub use client::{AuthorityOver, FencedRequest};
pub use gate::{Admission, Gate, Superseded};
pub use header::{FENCING_TOKEN, FencingHeader, HeaderError};
pub use layer::FenceLayer;
pub use protection::{Need, Protection};
pub use refusal::Refusal;
pub use service::Fenced;
pub use tally::Tally;
