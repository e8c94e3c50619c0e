use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tenure_core::{
    Attempt, Candidate, Fault, FencingToken, Incarnation, Lease, LeaseName, Note, StoreError, Ttl, WatchEvent,
};

/// What the model keeps of a lease. Times are the store's clock, in milliseconds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// Who holds it, or held it last.
    pub holder: Candidate,
    /// The token of the current term, or of the last one.
    pub token: FencingToken,
    /// The attempt by which the term was taken.
    pub attempt: Attempt,
    /// How many terms there have been.
    pub terms: u64,
    /// The ttl of the last acquisition or renewal.
    pub ttl: Ttl,
    /// When the term began.
    pub began_ms: u64,
    /// When it was last renewed, or began.
    pub renewed_ms: u64,
    /// When it expires: it is expired at this moment, no longer held.
    pub expires_ms: u64,
    /// When its holder gave it back.
    pub released_ms: Option<u64>,
    /// Whether somebody asked the holder to step down.
    pub asked: bool,
    /// What the holder noted.
    pub note: Note,
}

impl Record {
    /// The lease as the record says at `now_ms`.
    #[must_use]
    pub fn lease(&self, name: &LeaseName, now_ms: u64) -> Lease {
        let since = |then_ms: u64| Duration::from_millis(now_ms.saturating_sub(then_ms));
        let remaining_ms = match self.released_ms {
            Some(_) => 0,
            None => self.expires_ms.saturating_sub(now_ms),
        };
        Lease {
            name: name.clone(),
            holder: self.holder.clone(),
            token: self.token,
            attempt: self.attempt,
            terms: self.terms,
            ttl: self.ttl,
            remaining: Duration::from_millis(remaining_ms),
            released: self.released_ms.is_some(),
            held_for: since(self.began_ms),
            renewed_ago: since(self.renewed_ms),
            asked_to_step_down: self.asked,
            note: self.note.clone(),
        }
    }

    /// Whether no lease with its ttl can last so long.
    pub(super) fn lasts_too_long(&self, now_ms: u64) -> bool {
        let remaining = Duration::from_millis(self.expires_ms.saturating_sub(now_ms));
        self.is_held(now_ms) && !self.ttl.may_leave(remaining)
    }

    /// Whether somebody holds the lease at `now_ms`.
    #[must_use]
    pub fn is_held(&self, now_ms: u64) -> bool {
        self.released_ms.is_none() && now_ms < self.expires_ms
    }
}

/// What stands under a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Slot {
    /// A record of the store's own.
    Own(Record),
    /// Something that cannot be understood, shown as this text.
    Foreign(String),
}

/// Everything that a model store keeps, and the rules of the contract over it (`rules.rs`).
///
/// Pure: the time is an argument, and what watchers should hear is collected in
/// [`take_events`](Self::take_events).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Records {
    /// What stands under each name, in the order of the names.
    pub slots: BTreeMap<LeaseName, Slot>,
    /// Keys among them that are no names.
    pub strays: BTreeSet<String>,
    pub(super) events: Vec<WatchEvent>,
}

impl Records {
    /// The record of `name`.
    ///
    /// # Errors
    /// [`Fault::Unreadable`] if something else stands there.
    pub fn read(&self, name: &LeaseName) -> Result<Option<&Record>, StoreError> {
        match self.slots.get(name) {
            None => Ok(None),
            Some(Slot::Own(record)) => Ok(Some(record)),
            Some(Slot::Foreign(_)) => Err(unreadable(name.as_str())),
        }
    }

    /// The record of `name` for whoever asks: one that lasts longer than any lease is none, but to its
    /// holder, who mends it.
    ///
    /// # Errors
    /// [`Fault::Unreadable`].
    pub(super) fn read_for(
        &self,
        asker: Option<Incarnation>,
        name: &LeaseName,
        now_ms: u64,
    ) -> Result<Option<&Record>, StoreError> {
        match self.read(name)? {
            Some(record) if asker != Some(record.holder.incarnation) && record.lasts_too_long(now_ms) => {
                Err(unreadable(name.as_str()))
            }
            found => Ok(found),
        }
    }

    /// What happened since this was last called, for watchers.
    pub fn take_events(&mut self) -> Vec<WatchEvent> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn write(&mut self, name: &LeaseName, record: Record) {
        self.slots.insert(name.clone(), Slot::Own(record));
    }
}

/// The answer to whatever concerns a record that is none.
pub(super) fn unreadable(key: &str) -> StoreError {
    StoreError::not_applied(
        Fault::Unreadable,
        format!(
            "the record of lease \"{key}\" was not written by Tenure; it was left as it is: remove or rename it"
        ),
    )
}
