use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// The number of one term: strictly greater than the number of every earlier term of the same lease name,
/// for ever — through release, expiry, clean-up, restart and restore.
///
/// Range: 1 ..= [`MAX`](Self::MAX). It travels with the work of the term that earned it; the data path
/// refuses a lower one ([`Fence`](crate::Fence)). Nothing hands out "the current token".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(NonZeroU64);

/// A number that no term can have.
///
/// Effect on authority: none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TokenError;

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a fencing token is a whole number from 1 to {}",
            FencingToken::MAX
        )
    }
}

impl std::error::Error for TokenError {}

impl FencingToken {
    /// The largest token there can be: 253402300799999, the last millisecond of the year 9999.
    ///
    /// Tokens are a clock's milliseconds or are counted from one, so that none is above it by itself. A
    /// greater number is a slip of whoever wrote it: believed once, by a lease or a fence, it would let no
    /// real term pass ever again. It is also below 2^53, so that no language's numbers make two tokens one.
    pub const MAX: Self = match NonZeroU64::new(253_402_300_799_999) {
        Some(number) => Self(number),
        None => unreachable!(),
    };

    /// The token with this number.
    ///
    /// # Errors
    /// [`TokenError`] for 0 and for more than [`MAX`](Self::MAX).
    pub fn new(number: u64) -> Result<Self, TokenError> {
        match NonZeroU64::new(number) {
            Some(token) if token <= Self::MAX.0 => Ok(Self(token)),
            _ => Err(TokenError),
        }
    }

    /// The token of a record that keeps signed numbers.
    ///
    /// # Errors
    /// [`TokenError`] for what is below 1 or above [`MAX`](Self::MAX).
    pub fn from_signed(number: i64) -> Result<Self, TokenError> {
        u64::try_from(number).map_err(|_| TokenError).and_then(Self::new)
    }

    /// The plain number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.get()
    }

    /// The plain number for a record that keeps signed numbers.
    #[must_use]
    pub fn signed(self) -> i64 {
        i64::try_from(self.0.get()).expect("a token is at most MAX, checked when it was made")
    }

    /// The rule for the token of the next term: `max(previous + 1, the store's clock in milliseconds)`.
    ///
    /// The clock is only a floor: it lets tokens rise even when the record was purged, restored from a
    /// backup or moved to another store. `None` when the numbers are used up.
    #[must_use]
    pub fn successor(previous: Option<Self>, store_clock_ms: u64) -> Option<Self> {
        let counted = previous.map_or(1, |token| token.0.get() + 1);
        Self::new(counted.max(store_clock_ms)).ok()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({})", self.0)
    }
}

impl FromStr for FencingToken {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        text.parse::<u64>().map_err(|_| TokenError).and_then(Self::new)
    }
}
