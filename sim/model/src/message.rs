//! Requests and answers with small numbers for names, and their real forms.

use crate::configuration::{ASKED_TICKS, Configuration, Feature, TICK, granted};
use crate::local::{another, candidate, itself, lease_name};
use crate::names::{Ranks, STALE, attempt_of, small, token_of};
use std::fmt;
use tenure_core::{
    Acquire, Acquired, Attempt, Certainty, Fault, FencingToken, Grant, Lease, Note, Operation, Release,
    Released, Renew, Renewed, Reply, StoreError, Ttl, Wish,
};

/// A request to the store, by whoever sent it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Ask {
    Acquire { attempt: u8 },
    Renew { token: u8, attempt: u8 },
    Release { token: u8, attempt: u8 },
    Look,
}

impl Ask {
    /// The request of an engine in the model's words; `None` for one that no right engine sends.
    pub(crate) fn read(operation: &Operation) -> Option<Self> {
        let asked = Ttl::try_from(TICK * ASKED_TICKS).ok()?;
        let ask = match operation {
            Operation::Acquire(acquire) => Self::Acquire {
                attempt: small(acquire.attempt.number()),
            },
            Operation::Renew(renewals) => Self::Renew {
                token: small(renewals.first()?.token.number()),
                attempt: small(renewals.first()?.attempt.number()),
            },
            Operation::Release(releases) => Self::Release {
                token: small(releases.first()?.token.number()),
                attempt: small(releases.first()?.attempt.number()),
            },
            Operation::Look(_) => Self::Look,
        };
        (ask.operation(asked) == *operation).then_some(ask)
    }

    /// The real request, by the process that every candidate calls itself, for this ttl.
    pub(crate) fn operation(self, ttl: Ttl) -> Operation {
        match self {
            Self::Acquire { attempt } => Operation::Acquire(Acquire {
                name: lease_name(),
                candidate: candidate(itself()),
                attempt: attempt_of(attempt),
                ttl,
                note: Note::default(),
            }),
            Self::Renew { token, attempt } => Operation::Renew(vec![Renew {
                name: lease_name(),
                incarnation: itself(),
                token: token_of(token),
                attempt: attempt_of(attempt),
                ttl,
            }]),
            Self::Release { token, attempt } => Operation::Release(vec![Release {
                name: lease_name(),
                incarnation: itself(),
                token: token_of(token),
                attempt: attempt_of(attempt),
            }]),
            Self::Look => Operation::Look(lease_name()),
        }
    }

    /// Marks the numbers in use.
    pub(crate) fn count(self, tokens: &mut Ranks, attempts: &mut Ranks) {
        match self {
            Self::Acquire { attempt } => attempts.add_name(attempt),
            Self::Renew { token, attempt } | Self::Release { token, attempt } => {
                tokens.add_name(token);
                attempts.add_name(attempt);
            }
            Self::Look => {}
        }
    }

    /// The request as a number of 13 bits.
    pub(crate) fn code(self) -> u32 {
        let (kind, token, attempt) = match self {
            Self::Acquire { attempt } => (0, 0, attempt),
            Self::Renew { token, attempt } => (1, token, attempt),
            Self::Release { token, attempt } => (2, token, attempt),
            Self::Look => (3, 0, 0),
        };
        kind | u32::from(token) << 2 | u32::from(attempt) << 8
    }

    /// The token of the term that it is about; 0 if it is about none.
    pub(crate) fn term(self) -> u8 {
        match self {
            Self::Renew { token, .. } | Self::Release { token, .. } => token,
            Self::Acquire { .. } | Self::Look => 0,
        }
    }

    /// The same request, which no longer says which term it is about unless that has this token.
    pub(crate) fn aged(self, record_token: u8) -> Self {
        let (token, attempt) = (STALE, STALE);
        match self {
            Self::Renew { token: about, .. } if about != record_token => Self::Renew { token, attempt },
            Self::Release { token: about, .. } if about != record_token => Self::Release { token, attempt },
            Self::Acquire { .. } | Self::Renew { .. } | Self::Release { .. } | Self::Look => self,
        }
    }

    /// The same request with its numbers replaced by their ranks.
    pub(crate) fn renamed(self, tokens: Ranks, attempts: Ranks) -> Self {
        match self {
            Self::Acquire { attempt } => Self::Acquire {
                attempt: attempts.name(attempt),
            },
            Self::Renew { token, attempt } => Self::Renew {
                token: tokens.name(token),
                attempt: attempts.name(attempt),
            },
            Self::Release { token, attempt } => Self::Release {
                token: tokens.name(token),
                attempt: attempts.name(attempt),
            },
            Self::Look => Self::Look,
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let term = |f: &mut fmt::Formatter<'_>, what, token| match token {
            STALE => write!(f, "{what} of a term that is long over"),
            _ => write!(f, "{what} of term {token}"),
        };
        match *self {
            Self::Acquire { attempt } => write!(f, "acquisition by attempt {attempt}"),
            Self::Renew { token, .. } => term(f, "renewal", token),
            Self::Release { token, .. } => term(f, "release", token),
            Self::Look => f.write_str("look"),
        }
    }
}

/// What the store answered, as far as an engine acts on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Answer {
    Granted {
        token: u8,
    },
    Held {
        token: u8,
        remaining_ticks: u8,
    },
    Superseded,
    Extended {
        asked: bool,
    },
    /// The term is another's, or of the same process but over.
    Lost {
        own: bool,
    },
    Vacated,
    NotYours,
    /// Nothing, or a lease of another process.
    SawAnother,
    /// A lease of the process that looked; `held` if it still runs.
    SawOwn {
        token: u8,
        attempt: u8,
        held: bool,
    },
}

impl Answer {
    /// The answer as a number of 16 bits.
    pub(crate) fn code(self) -> u32 {
        let (kind, first, second) = match self {
            Self::Granted { token } => (0, token, 0),
            Self::Held {
                token,
                remaining_ticks,
            } => (1, token, remaining_ticks),
            Self::Superseded => (2, 0, 0),
            Self::Extended { asked } => (3, u8::from(asked), 0),
            Self::Lost { own } => (4, u8::from(own), 0),
            Self::Vacated => (5, 0, 0),
            Self::NotYours => (6, 0, 0),
            Self::SawAnother => (7, 0, 0),
            Self::SawOwn { token, attempt, held } => (8 + u32::from(held), token, attempt),
        };
        kind | u32::from(first) << 4 | u32::from(second) << 10
    }

    /// The answer as the engine gets it.
    pub(crate) fn reply(self) -> Reply {
        match self {
            Self::Granted { token } => Reply::Acquired(Ok(Acquired::Granted(Grant {
                token: token_of(token),
                ttl: granted(),
                terms: 1,
                again: false,
                predecessor: None,
            }))),
            Self::Held {
                token,
                remaining_ticks,
            } => Reply::Acquired(Ok(Acquired::Held(Lease {
                remaining: TICK * u32::from(remaining_ticks),
                ..lease(token_of(token))
            }))),
            Self::Superseded => Reply::Acquired(Ok(Acquired::Superseded)),
            Self::Extended { asked } => Reply::Renewed(vec![Ok(Renewed::Extended {
                ttl: granted(),
                wish: if asked { Wish::StepDown } else { Wish::Nothing },
            })]),
            // Which lease is told to the engine decides only how the end is reported.
            Self::Lost { own: true } => Reply::Renewed(vec![Ok(Renewed::Lost(None))]),
            Self::Lost { own: false } => {
                let theirs = Box::new(lease(token_of(u8::MAX)));
                Reply::Renewed(vec![Ok(Renewed::Lost(Some(theirs)))])
            }
            Self::Vacated => Reply::Released(vec![Ok(Released::Vacated)]),
            Self::NotYours => Reply::Released(vec![Ok(Released::NotYours(None))]),
            Self::SawAnother => Reply::Looked(Ok(None)),
            Self::SawOwn { token, attempt, held } => Reply::Looked(Ok(Some(Lease {
                holder: candidate(itself()),
                attempt: attempt_of(attempt),
                remaining: if held { TICK } else { std::time::Duration::ZERO },
                ..lease(token_of(token))
            }))),
        }
    }

    /// The answer without what no engine looks at: whose token is held matters only after a hint.
    pub(crate) fn needed(self, configuration: &Configuration) -> Self {
        match self {
            Self::Held { remaining_ticks, .. } if !configuration.has(Feature::Hints) => Self::Held {
                token: STALE,
                remaining_ticks,
            },
            _ => self,
        }
    }

    pub(crate) fn count(self, tokens: &mut Ranks, attempts: &mut Ranks) {
        match self {
            Self::Granted { token } | Self::Held { token, .. } => tokens.add_name(token),
            Self::SawOwn { token, attempt, .. } => {
                tokens.add_name(token);
                attempts.add_name(attempt);
            }
            Self::Superseded
            | Self::Extended { .. }
            | Self::Lost { .. }
            | Self::Vacated
            | Self::NotYours
            | Self::SawAnother => {}
        }
    }

    pub(crate) fn renamed(self, tokens: Ranks, attempts: Ranks) -> Self {
        match self {
            Self::Granted { token } => Self::Granted {
                token: tokens.name(token),
            },
            Self::Held {
                token,
                remaining_ticks,
            } => Self::Held {
                token: tokens.name(token),
                remaining_ticks,
            },
            Self::SawOwn { token, attempt, held } => Self::SawOwn {
                token: tokens.name(token),
                attempt: attempts.name(attempt),
                held,
            },
            Self::Superseded
            | Self::Extended { .. }
            | Self::Lost { .. }
            | Self::Vacated
            | Self::NotYours
            | Self::SawAnother => self,
        }
    }
}

/// The answer to `ask` when the store failed.
pub(crate) fn failure(ask: Ask, certainty: Certainty) -> Reply {
    let error = StoreError {
        fault: Fault::Unreachable,
        certainty,
        message: String::new(),
    };
    match ask {
        Ask::Acquire { .. } => Reply::Acquired(Err(error)),
        Ask::Renew { .. } => Reply::Renewed(vec![Err(error)]),
        Ask::Release { .. } => Reply::Released(vec![Err(error)]),
        Ask::Look => Reply::Looked(Err(error)),
    }
}

/// A held lease of somebody else.
fn lease(token: FencingToken) -> Lease {
    Lease {
        name: lease_name(),
        holder: another(),
        token,
        attempt: Attempt::FIRST,
        terms: 1,
        ttl: granted(),
        remaining: TICK,
        released: false,
        held_for: std::time::Duration::ZERO,
        renewed_ago: std::time::Duration::ZERO,
        asked_to_step_down: false,
        note: Note::default(),
    }
}
