//! Processes that end with the test.

mod death;
mod guard;
mod output;
mod spawner;

pub use guard::{Process, is_alive};
pub use output::{Line, Stream};
pub(crate) use spawner::spawn as spawn_child;
