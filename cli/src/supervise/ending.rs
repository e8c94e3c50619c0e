//! How terms end.

use std::process::ExitStatus;

/// How the command of a term ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// By itself, and left so many processes behind.
    ByItself(ExitStatus, usize),
    /// On a signal to this process that was passed on to it.
    OnSignal(ExitStatus),
    /// It was ended, because the term was: why.
    Ended(Why),
    /// A part of it cannot be killed: the lease must not be given back.
    Unkillable,
}

/// Why a command was ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// Somebody asked the holder to step down.
    Asked,
    /// The term was or became doubtful, or was over: in words.
    Lost(String),
    /// The work was not well: in words.
    Unwell(String),
}
