use std::sync::Arc;
use tenure_core::{Answer, LeaseName, LeasePurge, LeaseStore};

/// What a hook did.
///
/// No hook has a default and none may be skipped: a store that cannot provide one says so, with the reason,
/// and the cases then check what follows from that (a record that cannot be damaged must stay readable).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Hooked<T> {
    /// It was done, with this result.
    Done(T),
    /// The storage makes it impossible. One line that says why; never empty.
    Unsupported(&'static str),
}

/// How a record is damaged, or replaced by something that Tenure did not write.
///
/// Each is applied to an existing record, in place, by the storage's own means and behind the store's back.
/// All but [`LastToken`](Self::LastToken) and [`LongNote`](Self::LongNote) make the record one that cannot be
/// understood.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Corruption {
    /// The token is −7.
    NegativeToken,
    /// The token is 0.
    ZeroToken,
    /// The token is a number above 2^63 − 1, in whatever type the storage has for it (a float of 1e300).
    HugeToken,
    /// The token is [`BEYOND_THE_LAST`](Self::BEYOND_THE_LAST), of the right type.
    TokenBeyondTheLast,
    /// The token is a text: `seven`.
    TokenIsText,
    /// There is no token: the field is absent or null.
    NoToken,
    /// The candidate id is the number 7.
    HolderIsNumber,
    /// The candidate id has a control character, which no candidate id can have.
    HolderIsMalformed,
    /// There is no candidate id: the field is absent or null.
    NoHolder,
    /// The incarnation is a text that is none: `not-an-incarnation`.
    IncarnationIsMalformed,
    /// The attempt is −1.
    NegativeAttempt,
    /// The attempt is a text: `first`.
    AttemptIsText,
    /// The expiry is a text: `tomorrow`.
    ExpiryIsText,
    /// There is no expiry: the field is absent or null.
    NoExpiry,
    /// The expiry is centuries away ([`FAR_OFF_MS`](Self::FAR_OFF_MS)), and the ttl what it was.
    ExpiryFarOff,
    /// The ttl is 0.
    ZeroTtl,
    /// The ttl is a text: `long`.
    TtlIsText,
    /// The record has the right key and none of the right fields: another application's.
    Alien,
    /// The record stays valid but its token is [`FencingToken::MAX`](tenure_core::FencingToken::MAX), the
    /// last one: there is no successor.
    LastToken,
    /// The record stays valid but its note is [`long_note`](Self::long_note), longer than any of Tenure's
    /// own.
    LongNote,
}

impl Corruption {
    /// The least number above all tokens.
    pub const BEYOND_THE_LAST: i64 = 253_402_300_800_000;
    /// The end of the year 9999, in milliseconds since 1970.
    pub const FAR_OFF_MS: i64 = 253_402_300_799_999;

    /// A note of 12,000 bytes, in characters of three.
    #[must_use]
    pub fn long_note() -> String {
        "€".repeat(4_000)
    }
}

/// What a store author supplies: two clients of one storage, and the ways beneath them.
///
/// A fixture is made for every case, and dropped when the case ends, also when it panics: clean up in `Drop`.
/// The storage may be shared by cases that run at the same time: each uses names of its own.
pub trait Subject: Send + Sync {
    /// A client of the storage.
    fn store(&self) -> Arc<dyn LeaseStore>;

    /// A second client of the same storage, as another process would have one: a connection of its own, no
    /// state shared with the first.
    fn other(&self) -> Arc<dyn LeaseStore>;

    /// The store's clock in milliseconds, as it enters into tokens: what
    /// [`FencingToken::successor`](tenure_core::FencingToken::successor) is given.
    ///
    /// Unsupported only where [`TokenSource`](tenure_core::TokenSource) is a revision.
    fn clock_ms(&self) -> Answer<'_, Hooked<u64>>;

    /// The whole record as text, every field with its type, in a stable order, read by the storage's own
    /// means; `None` where there is no record. Only ever compared with itself.
    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>>;

    /// Damages the existing record of `name` by the storage's own means.
    ///
    /// Unsupported if the storage refuses such a record (a typed column): then nothing may have changed, and
    /// the case checks that.
    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>>;

    /// Leaves something by the storage's own means under a key that is no lease's name, as another program
    /// would: where the record of a lease of this name would be, were it one.
    ///
    /// Unsupported only if the storage has no such keys.
    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>>;

    /// Removes the record of `name` by the storage's own means, as a clean-up or an operator would.
    ///
    /// Unsupported only if the storage cannot remove a record: then the case checks that it is still there.
    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>>;

    /// Whether a renewal of the very term may be told as extended although its record cannot be read: where
    /// something beside the record says who holds the lease, and a large batch reads no records.
    fn renews_unread(&self) -> bool {
        false
    }

    /// Whether the clock by which a record expires may be set back. Where it cannot, a record whose expiry is
    /// far off is damaged, and its holder's no more than another's.
    fn clock_may_be_set_back(&self) -> bool {
        true
    }

    /// The store as what cleans it up.
    ///
    /// Unsupported where the store cannot tell how long nobody has used a record.
    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>>;
}
