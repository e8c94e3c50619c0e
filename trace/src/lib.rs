//! A trace of an engine: what it was told and what it asked for, one JSON object a line.
//!
//! An [`Engine`](tenure_core::Engine) is a function of its construction and of the pairs of moment and input
//! it is stepped with. So its trace is complete, and [`replay`] runs it again: the same engine, the same
//! inputs, and every request, event and wake compared. [`check`] holds a trace against what is promised
//! without using the engine, [`merge`] the traces of several processes against each other, and [`narrate`]
//! tells a person what happened.

#![forbid(unsafe_code)]

mod check;
mod error;
mod file;
mod form;
mod header;
mod merge;
mod narrate;
mod reader;
mod replay;
mod step;
mod writer;

pub use check::{Breach, Checked, Rule, TermSpan, check};
pub use error::{TraceError, TraceFault};
pub use file::{check_file, create, merge_files, narrate_file, open, replay_file};
pub use header::{FORMAT, Header};
pub use merge::{MergeError, Merged, merge};
pub use narrate::{Narration, narrate};
pub use reader::Reader;
pub use replay::{Difference, Part, Replayed, Verdict, replay};
pub use step::Step;
pub use writer::{Writer, header_line, step_line};

/// Longest line of a trace, in bytes with its end: 1 MiB, many times what one lease needs. A writer stops
/// before a longer one; a reader refuses it before it has read it all.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Longest trace, in bytes: 1 GiB, some three million steps. A writer stops before it gets longer, so that a
/// forgotten trace does not fill the disk; a reader refuses more.
pub const TRACE_BYTES_MAX: u64 = 1 << 30;
