use crate::{
    Acquired, FencingToken, Lease, LeaseName, Moment, Note, Released, Renewed, StoreError, WatchEvent,
};
use std::time::Duration;

/// The number of one request to the store, unique within an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub(super) u64);

impl RequestId {
    /// The request with this number, for a trace that is read back: an engine numbers its own.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The plain number, counted from 0.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What happens to an engine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// The store answered a request. An answer to a request that the engine has given up is dropped.
    Answer {
        /// Which request.
        request: RequestId,
        /// What the store said.
        reply: Reply,
    },
    /// The store's watch reported something: a hint.
    Watch(WatchEvent),
    /// The user of the engine wants something.
    Command(Command),
}

/// What the store said.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// To [`Operation::Acquire`](super::Operation::Acquire).
    Acquired(Result<Acquired, StoreError>),
    /// To [`Operation::Renew`](super::Operation::Renew): one outcome per lease, in order.
    Renewed(Vec<Result<Renewed, StoreError>>),
    /// To [`Operation::Release`](super::Operation::Release): one outcome per lease, in order.
    Released(Vec<Result<Released, StoreError>>),
    /// To [`Operation::Look`](super::Operation::Look).
    Looked(Result<Option<Lease>, StoreError>),
}

/// What the user of the engine wants.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Take the lease, however long it takes. While a term of the name is being ended, the campaign begins
    /// after it. Without effect while a campaign or a term of the name runs.
    Campaign {
        /// The lease.
        name: LeaseName,
        /// What to note in the record for people.
        note: Note,
        /// If given, renewals stop when no [`Command::Progress`] came for this long, so that a stuck worker
        /// does not lead for ever.
        progress_within: Option<Duration>,
        /// If given, the term is over this long after its [`Event::Acquired`](super::Event::Acquired):
        /// nothing is renewed past it, so that a deadlocked owner does not keep a lease for ever. The term is
        /// doubtful for the grace before, and ends with [`Cause::MaxHold`](super::Cause::MaxHold). It is not
        /// released, for the work may go on: the store lets others in when what was granted last expires,
        /// which is a ttl after the last renewal that could extend the term. Zero counts as a nanosecond.
        max_hold: Option<Duration>,
    },
    /// End the campaign. What an attempt may have taken unnoticed is found and released.
    /// Without effect on a term.
    Withdraw {
        /// The lease.
        name: LeaseName,
    },
    /// Begin to end the term: authority says `Ending` at once, renewals go on until the work has ended.
    StepDown {
        /// The lease.
        name: LeaseName,
        /// The term. Without effect on any other.
        token: FencingToken,
    },
    /// The work of the term has ended: authority is none from now, and the lease is released.
    WorkEnded {
        /// The lease.
        name: LeaseName,
        /// The term. Without effect on any other.
        token: FencingToken,
    },
    /// The work of the term has ended, and somebody else in this process goes on with the lease: authority of
    /// the term is none from now, and a campaign begins whose attempt takes the lease from it in one step,
    /// with a token of its own, and without a release in between. [`Event::Departed`](super::Event::Departed)
    /// tells of the old term when the attempt was answered. A campaign that ends without a term releases the
    /// old one after all.
    HandOn {
        /// The lease.
        name: LeaseName,
        /// The term. Without effect on any other.
        token: FencingToken,
        /// As [`Campaign`](Self::Campaign) has it.
        note: Note,
        /// As [`Campaign`](Self::Campaign) has it.
        progress_within: Option<Duration>,
        /// As [`Campaign`](Self::Campaign) has it.
        max_hold: Option<Duration>,
    },
    /// Somebody has seen the deadline of the term pass, before a renewal that was taken in since: the term is
    /// over, as at its deadline, and nothing is released.
    ///
    /// For a driver whose other threads read a [`Belief`](crate::Belief): it cannot publish such a renewal,
    /// because authority that was seen to be gone never comes back.
    DeadlineSeen {
        /// The lease.
        name: LeaseName,
        /// The term. Without effect on any other.
        token: FencingToken,
    },
    /// Extend the term now, not only with the next beat, for somebody who has just begun to count on it.
    /// Without effect where renewals have stopped, while one is under way, where the last one failed, and
    /// within an eighth of the renewal interval after the one that was granted last: nobody can make the
    /// engine ask all the time.
    Extend {
        /// The lease.
        name: LeaseName,
        /// The term. Without effect on any other.
        token: FencingToken,
    },
    /// The work of the term is not stuck.
    Progress {
        /// The lease.
        name: LeaseName,
        /// The term. Without effect on any other.
        token: FencingToken,
        /// When it last was not: now, or before.
        at: Moment,
    },
}
