//! How the command ends: its exit codes, and the one line that says why.

use crate::arguments::in_one_line;
use rustix::process::Signal;
use std::fmt;
use tenure::contract::{Fault, NameError, NoteTooLong};
use tenure::{BuildError, CampaignError, StoreError, TimingError};

/// Exit codes, beside 0 and those of a command that was run. Numbers from `sysexits.h` where it has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    /// What was asked for is not so: a store that is not safe, a term that did not end.
    No,
    /// Wrong arguments.
    Usage,
    /// A record that cannot be understood.
    Unreadable,
    /// The store is unreachable, or does not answer.
    Unavailable,
    /// A fault of Tenure's or of the store's own.
    Internal,
    /// The store takes no writes.
    ReadOnly,
    /// The store's disk is full.
    Full,
    /// Another candidate holds the lease.
    Held,
    /// Wrong credentials or missing privileges.
    Forbidden,
    /// Names, timing, a ttl outside the store's range, a store URL.
    Configuration,
    /// Leadership ended while the command ran, and the command was ended.
    Lost,
    /// A later term has claimed what is protected.
    Stale,
    /// The term has not claimed what is protected.
    Unclaimed,
    /// The store can lose what it has confirmed: leases alone are not safe in it.
    FenceOnly,
    /// The command exists but cannot be executed.
    NotExecutable,
    /// The command does not exist.
    NotFound,
}

impl Code {
    /// The number that the shell sees.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::No => 1,
            Self::Usage => 2,
            Self::Unreadable => 65,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::ReadOnly => 73,
            Self::Full => 74,
            Self::Held => 75,
            Self::Forbidden => 77,
            Self::Configuration => 78,
            Self::Lost => 79,
            Self::Stale => 80,
            Self::Unclaimed => 81,
            Self::FenceOnly => 82,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
        }
    }
}

impl From<Fault> for Code {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unreachable | Fault::TimedOut | Fault::Busy | Fault::AnotherStore => Self::Unavailable,
            Fault::Full => Self::Full,
            Fault::Unauthenticated | Fault::Forbidden => Self::Forbidden,
            Fault::ReadOnly => Self::ReadOnly,
            Fault::Unreadable => Self::Unreadable,
            Fault::Unsupported | Fault::Invalid => Self::Configuration,
            Fault::Internal => Self::Internal,
        }
    }
}

/// The exit code of a command that a signal ended, as shells have it.
pub(crate) fn of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// How this process ends, where it could do what it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// With this exit code.
    Code(u8),
    /// By this signal, which has ended what it ran, or its waiting.
    Signal(Signal),
}

/// The end of a command that could not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: u8,
    /// One line for a person: the lease, the number, the way out. Never a secret.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: code.number(),
            message: message.into(),
        }
    }

    /// Whether making the same claim again is useless: [`FenceError::ends_a_claim`](tenure::FenceError), by
    /// the code. But for another store at the old address: each try of the command opens the fence anew.
    pub(crate) fn ends_a_claim(&self) -> bool {
        !self.passes()
    }

    /// Whether it may pass by itself.
    pub(crate) fn passes(&self) -> bool {
        let passing = [Code::Unavailable, Code::Full, Code::Internal];
        passing.map(Code::number).contains(&self.code)
    }

    /// The same, said of a lease.
    pub(crate) fn of_lease(self, name: &str) -> Self {
        if self.message.contains(&format!("lease \"{name}\"")) {
            return self;
        }
        Self {
            message: format!("lease \"{name}\": {}", self.message),
            ..self
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<clap::Error> for Failure {
    /// In one line, without the usage.
    fn from(error: clap::Error) -> Self {
        Self::new(Code::Usage, in_one_line(&error))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(Code::from(error.fault), error.message)
    }
}

impl From<TimingError> for Failure {
    fn from(error: TimingError) -> Self {
        Self::new(Code::Configuration, error.to_string())
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Self::new(Code::Configuration, error.to_string())
    }
}

impl From<NoteTooLong> for Failure {
    fn from(error: NoteTooLong) -> Self {
        Self::new(Code::Configuration, error.to_string())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Name(error) => error.into(),
            BuildError::Note(error) => error.into(),
            BuildError::Timing(error) => error.into(),
            BuildError::MaxHold(_) => Self::new(Code::Configuration, error.to_string()),
            // What could not be started, and whatever is to come.
            _ => Self::new(Code::Internal, error.to_string()),
        }
    }
}

impl From<CampaignError> for Failure {
    fn from(error: CampaignError) -> Self {
        match error {
            CampaignError::Store(error) => error.into(),
            _ => Self::new(Code::Internal, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;
    use tenure::contract::Fault;
    use tenure::{FenceError, StoreError};

    #[test]
    fn what_ends_a_claim_is_one_rule() {
        for fault in Fault::ALL {
            let error = StoreError::not_applied(fault, "fence \"ledger\"");
            let of_the_command = Failure::from(error.clone()).ends_a_claim();
            let of_a_term = FenceError::Store(error).ends_a_claim();
            let is_opened_anew = fault == Fault::AnotherStore;
            assert_eq!(of_the_command, of_a_term && !is_opened_anew, "{fault:?}");
        }
    }
}
