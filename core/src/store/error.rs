use std::fmt;

/// What went wrong in a store.
///
/// It may grow with any version, and is not `#[non_exhaustive]` all the same: every store and engine is to
/// decide what a new word means to it before it compiles. Outside of Tenure, end a match with `_`, or ask the
/// methods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// No connection, no primary, name not resolved. Effect on authority: none before the deadline.
    Unreachable,
    /// No answer within the time allowed. Effect on authority: none before the deadline.
    TimedOut,
    /// The store is too busy or locked by another writer. Effect on authority: none before the deadline.
    Busy,
    /// No space left. A held lease may end at its deadline; nothing is granted.
    Full,
    /// Another store answers than the one that was asked before: its data were restored, moved or made anew,
    /// or its address leads elsewhere. It would have leaders of its own, and is asked for nothing. No
    /// misconfiguration, as whoever opens the store anew goes by the one that is there; but who has it open
    /// tries on until a person acts. Effect on authority: none before the deadline.
    AnotherStore,
    /// The store refused the credentials. A misconfiguration, as far as it tells: an operator must act. Not
    /// [final](Self::is_final).
    Unauthenticated,
    /// The credentials lack a privilege. A misconfiguration.
    Forbidden,
    /// The store takes no writes. A misconfiguration.
    ReadOnly,
    /// A record was not written by Tenure, or is damaged, or lasts longer than a lease can; it was left as it
    /// is. A misconfiguration, and not [final](Self::is_final).
    Unreadable,
    /// This store, or this set-up of it, cannot do what was asked. A misconfiguration.
    Unsupported,
    /// The request itself is wrong (a ttl outside the store's range, a bad URL). A misconfiguration.
    Invalid,
    /// Anything else, the store's own faults included. Effect on authority: none before the deadline.
    // The last one: so a new one before it is missed in the list of all.
    Internal,
}

const _: () = assert!(
    Fault::ALL.len() == Fault::Internal as usize + 1,
    "Fault::ALL lacks one"
);

impl Fault {
    /// Every kind, in the order of their declaration.
    pub const ALL: [Self; 12] = [
        Self::Unreachable,
        Self::TimedOut,
        Self::Busy,
        Self::Full,
        Self::AnotherStore,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::ReadOnly,
        Self::Unreadable,
        Self::Unsupported,
        Self::Invalid,
        Self::Internal,
    ];

    /// Whether only a person can mend it, as far as the store tells. Opening a store fails on it at once;
    /// what it ends later, [`is_final`](Self::is_final) says.
    #[must_use]
    pub fn is_misconfiguration(self) -> bool {
        match self {
            Self::Unauthenticated
            | Self::Forbidden
            | Self::ReadOnly
            | Self::Unreadable
            | Self::Unsupported
            | Self::Invalid => true,
            Self::Unreachable
            | Self::TimedOut
            | Self::Busy
            | Self::Full
            | Self::AnotherStore
            | Self::Internal => false,
        }
    }

    /// Whether trying again is useless. Such a fault ends a campaign and the wait for a lock; no other fault
    /// does. (For a release see [`ends_a_release`](Self::ends_a_release).) It never ends a term before its
    /// deadline.
    ///
    /// It is what only a person can mend ([`is_misconfiguration`](Self::is_misconfiguration)), but for two.
    ///
    /// A login that is refused: whoever asks for a lease was let in when the store was opened. What refuses
    /// the same credentials later may be a service behind the store that is away for a moment (a directory,
    /// the servers that keep the users), in the very words of a wrong password; and each candidate that loses
    /// its connection meanwhile would be out for good.
    ///
    /// A record that cannot be read: where the store's clock was set back, the holder's next renewal puts it
    /// right. And whoever else mends it would find no candidate left.
    #[must_use]
    pub fn is_final(self) -> bool {
        self.is_misconfiguration() && !matches!(self, Self::Unauthenticated | Self::Unreadable)
    }

    /// Whether it ends the tries to give a lease back, and to find what an attempt has left: what is
    /// [final](Self::is_final), and a record that cannot be read.
    ///
    /// That is none for the lease's own holder where the store's clock was set back: it gives the lease back
    /// all the same. What its holder cannot read, only a person mends, and nobody is to wait for that for a
    /// ttl: the lease is over here.
    #[must_use]
    pub fn ends_a_release(self) -> bool {
        self.is_final() || self == Self::Unreadable
    }

    /// Its kind in a word, as metrics, logs and the command's JSON have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Busy => "busy",
            Self::Full => "full",
            Self::AnotherStore => "another_store",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::ReadOnly => "read_only",
            Self::Unreadable => "unreadable",
            Self::Unsupported => "unsupported",
            Self::Invalid => "invalid",
            Self::Internal => "internal",
        }
    }
}

/// Whether a failed request took effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Certainty {
    /// It certainly changed nothing, and never will.
    NotApplied,
    /// It may have taken effect, or may still.
    Unknown,
}

/// A store's failure: what, whether the request took effect, and one line for a person.
///
/// The line names the lease where there is one, the number that matters and the way out, and never holds a
/// secret. Effect on authority: none before the deadline, whatever the fault.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StoreError {
    /// What went wrong.
    pub fault: Fault,
    /// Whether the request took effect.
    pub certainty: Certainty,
    /// One line for a person.
    pub message: String,
}

impl StoreError {
    /// A failure after which nothing was changed.
    #[must_use]
    pub fn not_applied(fault: Fault, message: impl Into<String>) -> Self {
        Self {
            fault,
            certainty: Certainty::NotApplied,
            message: message.into(),
        }
    }

    /// A failure after which nobody knows.
    #[must_use]
    pub fn unknown(fault: Fault, message: impl Into<String>) -> Self {
        Self {
            fault,
            certainty: Certainty::Unknown,
            message: message.into(),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}
