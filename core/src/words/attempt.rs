use std::fmt;

/// Number of one try to take a lease, counted by one incarnation over all its leases.
///
/// A store keeps the attempt in the record. A repeated request of the same attempt gets the same term
/// back, so a lost reply costs nothing. The attempt rotates on every release and after every ended term:
/// otherwise a late duplicate of an old release would kill a term that was taken again with the same token.
///
/// Range: 1 ..= 2^63 − 1. Only comparable between requests of the same [`Incarnation`](crate::Incarnation).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Attempt(u64);

impl Attempt {
    /// The first attempt of an incarnation.
    pub const FIRST: Self = Self(1);

    /// The attempt with this number; `None` outside 1 ..= 2^63 − 1.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        (number >= 1 && i64::try_from(number).is_ok()).then_some(Self(number))
    }

    /// The attempt after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The plain number, for records.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
