//! Model stores, with the habits of real ones.

mod server;

pub(crate) use server::{MILLISECOND, Memory, ServerStore};
