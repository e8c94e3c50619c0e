//! How terms end.

use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// How the command of a term ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// By itself, and left so many processes behind.
    ByItself(ExitStatus, usize),
    /// On a signal to this process that was passed on to it.
    OnSignal(ExitStatus),
    /// It was not started, as a signal to this process came before.
    NotBegun(Signal),
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
    /// The term became doubtful, or was over: in words.
    Lost(String),
    /// The work was not well, or this host cannot keep it: in words.
    Unwell(String),
}

/// Why a command and its group were told to end.
pub(super) enum End {
    /// The command has ended by itself; what it left behind goes, too.
    Leftovers(ExitStatus, usize),
    /// A signal to this process that asks for the end.
    Signal,
    Because(Why),
}

impl Ending {
    /// How work ended that is gone, with this command. Who has not told how its command did was killed, and
    /// the command with it.
    pub(super) fn of(ended: Option<&End>, leader: Option<ExitStatus>) -> Self {
        let status = leader.unwrap_or_else(|| ExitStatus::from_raw(Signal::KILL.as_raw()));
        match ended {
            Some(End::Because(why)) => Self::Ended(why.clone()),
            Some(End::Leftovers(status, left)) => Self::ByItself(*status, *left),
            Some(End::Signal) => Self::OnSignal(status),
            None => Self::ByItself(status, 0),
        }
    }
}
