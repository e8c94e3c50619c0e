//! Tenure's fence over HTTP: the `Fencing-Token` header that carries the token of a term to a service.

#![forbid(unsafe_code)]

mod client;
mod header;

pub use client::{AuthorityOver, FencedRequest};
pub use header::{FENCING_TOKEN, FencingHeader, HeaderError};
