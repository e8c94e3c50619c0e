use crate::{Attempt, Candidate, FencingToken, Incarnation, Note, Ttl};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Which version of a record this is, as the store shows it: a revision of NATS, a `resourceVersion` of
/// Kubernetes, an `ETag`.
///
/// Opaque: two are equal or they are not, and nothing else is ever asked. The store promises that **every
/// write makes a revision that the record never had before**. A hash of the content will do: no two writes of
/// one record have the same content ([`Entry::renewals`]).
///
/// A store that may lose what it has confirmed, and then number other writes the same, keeps that promise for
/// as long as it is known not to have lost anything: an [epoch](Self::in_epoch).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Revision {
    text: Arc<str>,
    epoch: u64,
}

impl Revision {
    /// The revision that the store shows as this text.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            epoch: 0,
        }
    }

    /// The same as it was shown in this epoch of a store whose revisions may come again. Later epochs have
    /// greater numbers. The store itself answers a swap over a revision of an epoch that may be over with
    /// [`Conflict`](super::Written::Conflict), and sends nothing: so it is read before it is written over.
    #[must_use]
    pub fn in_epoch(self, epoch: u64) -> Self {
        Self { epoch, ..self }
    }

    /// The epoch in which it was shown; 0 where the store has none.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The text, to be given back to the store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<u64> for Revision {
    /// For stores that number their revisions.
    fn from(number: u64) -> Self {
        Self::new(number.to_string())
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epoch {
            0 => write!(f, "Revision({})", self.text),
            epoch => write!(f, "Revision({} in epoch {epoch})", self.text),
        }
    }
}

/// What a record holds in a store that only compares and swaps. It has no time in it: nothing that a clock of
/// some client said could decide anything.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// Who holds the lease, or held it last.
    pub holder: Candidate,
    /// The token of the current term, or of the last one.
    pub token: FencingToken,
    /// The attempt by which the term was taken.
    pub attempt: Attempt,
    /// How many terms there have been, this one included. For people.
    pub terms: u64,
    /// The ttl of the last acquisition or renewal: how long everybody else waits.
    pub ttl: Ttl,
    /// How many times the term was extended, those included that failed or were lost.
    ///
    /// It makes every write of the holder differ from all before, so that a revision that is a hash of the
    /// content changes too, and others see that the holder lives: also where the store has lost what it
    /// confirmed, and gives the same revision again.
    pub renewals: u64,
    /// Whether the last holder gave it back.
    pub released: bool,
    /// Whether somebody asked the holder to step down.
    pub asked_to_step_down: bool,
    /// What the holder noted for people.
    pub note: Note,
}

/// A record as one answer of the store showed it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Version {
    /// Which version of the record: what a swap is conditional on.
    pub revision: Revision,
    /// What it holds.
    pub entry: Entry,
    /// How old it was then, where the store tells.
    pub ages: Option<Ages>,
}

/// How old a record was when it was read, by a clock of the store's: for people. Nothing is decided by it, so
/// that clock may be wrong, or be set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ages {
    /// Time since the term began.
    pub held_for: Duration,
    /// Time since the last sign of life.
    pub renewed_ago: Duration,
}

/// The holder's last sign of life: it changes with every term and every renewal, and with nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Heartbeat {
    pub(super) incarnation: Incarnation,
    pub(super) token: FencingToken,
    pub(super) attempt: Attempt,
    pub(super) renewals: u64,
}

impl Entry {
    pub(super) fn heartbeat(&self) -> Heartbeat {
        Heartbeat {
            incarnation: self.holder.incarnation,
            token: self.token,
            attempt: self.attempt,
            renewals: self.renewals,
        }
    }
}
