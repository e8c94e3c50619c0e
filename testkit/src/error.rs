//! What can go wrong in the kit, told so that a panic message is enough to act on.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::layout::FETCH_COMMAND;

/// Why the kit could not do what a test asked.
///
/// `Debug` prints the same sentence as `Display`, as tests meet it through `unwrap`.
pub enum Error {
    /// No server program was found. The message holds the command that installs it.
    NotInstalled {
        /// Name of the program.
        program: &'static str,
        /// Places that were looked at, in order.
        looked: Vec<String>,
    },
    /// The operating system refused something.
    System {
        /// What was being done.
        doing: String,
        /// What it answered.
        source: io::Error,
    },
    /// A process ended although it should be running.
    Ended {
        /// Which process, and how it ended.
        what: String,
        /// The last lines it wrote.
        tail: String,
    },
    /// Something did not become true in time.
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        after: Duration,
        /// What the last attempt found instead.
        last: String,
    },
    /// A server answered with an error.
    Refused {
        /// What was asked.
        doing: String,
        /// The driver's error.
        source: Box<mongodb::error::Error>,
    },
    /// A PostgreSQL or MariaDB server could not be asked, or answered with an error.
    Query {
        /// What was asked.
        doing: String,
        /// The driver's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A server is not yet in the state that was asked for; the text says in which it is.
    NotYet(String),
    /// Installing a server failed; the text says what to do.
    Fetch(String),
}

impl Error {
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::System { doing, source }
    }

    pub(crate) fn refused(doing: impl Into<String>) -> impl FnOnce(mongodb::error::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Refused {
            doing,
            source: Box::new(source),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotInstalled { program, looked } => {
                write!(
                    out,
                    "{program} is not installed (looked at: {}); run `{FETCH_COMMAND}`",
                    looked.join(", ")
                )
            }
            Error::System { doing, source } => write!(out, "{doing}: {source}"),
            Error::Ended { what, tail } => write!(out, "{what}; its last lines:\n{tail}"),
            Error::TimedOut { what, after, last } => {
                write!(
                    out,
                    "{what}: not within {} ms; last attempt: {last}",
                    after.as_millis()
                )
            }
            Error::Refused { doing, source } => write!(out, "{doing}: {source}"),
            Error::Query { doing, source } => write!(out, "{doing}: {source:?}"),
            Error::NotYet(text) | Error::Fetch(text) => out.write_str(text),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::System { source, .. } => Some(source),
            Error::Refused { source, .. } => Some(&**source),
            Error::Query { source, .. } => Some(&**source),
            Error::NotInstalled { .. }
            | Error::Ended { .. }
            | Error::TimedOut { .. }
            | Error::NotYet(_)
            | Error::Fetch(_) => None,
        }
    }
}
