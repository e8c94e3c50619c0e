use crate::Ttl;
use std::num::NonZeroUsize;

/// Who judges that a lease has expired.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timekeeper {
    /// The server's clock, read inside the deciding statement.
    Server,
    /// The server's session: the lease ends with it.
    Session,
    /// Nobody: each observer times how long a record has stayed unchanged.
    Observer,
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Durability {
    /// Crash and fail-over of the store: tokens never repeat.
    Safe,
    /// An acknowledged write can be lost: two holders are possible, and only the fence protects.
    FenceOnly(&'static str),
}

/// How waiting candidates learn of a release.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WatchSource {
    /// The store pushes.
    Push,
    /// Something cheap is polled where the records are: a file beside this process, or a row by the server
    /// itself.
    Poll,
    /// Not at all: candidates wait for the remaining time.
    Absent,
}

/// Where tokens come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TokenSource {
    /// `max(previous + 1, the store's clock in milliseconds)`.
    CounterAndClock,
    /// A number of the store's own that only rises, such as a revision.
    Revision,
}

/// What a store is and can do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StoreTraits {
    /// The kind of store, as in its URL: `sqlite`, `mongodb`.
    pub kind: &'static str,
    /// Which store this is, for people: a path, or host and database. Holds no secret.
    pub location: String,
    /// Who judges expiry.
    pub timekeeper: Timekeeper,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// How waiting candidates learn of a release.
    pub watch: WatchSource,
    /// Where tokens come from.
    pub token_source: TokenSource,
    /// Most leases that one call renews or releases.
    pub batch_max: NonZeroUsize,
    /// Shortest ttl that the store keeps to.
    pub ttl_min: Ttl,
    /// Longest ttl that the store keeps to.
    pub ttl_max: Ttl,
}
