use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// How much a candidate is wanted as the leader: of those who wait in order, whoever has the highest goes
/// first, and of equals who came first.
///
/// Range: 0 ..= 1,000, as the priorities of a MongoDB replica set. 0: never; it may wait, and its turn does
/// not come. Default: 1. Effect on safety: none; the lease alone says who leads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Priority(u16);

impl Priority {
    /// Never leads.
    pub const NEVER: Self = Self(0);

    /// The highest.
    pub const MAX: Self = Self(1_000);

    /// The priority with this number.
    ///
    /// # Errors
    /// [`PriorityError`] above 1,000.
    pub fn new(number: u16) -> Result<Self, PriorityError> {
        if number > Self::MAX.0 {
            return Err(PriorityError::TooHigh(number));
        }
        Ok(Self(number))
    }

    /// The plain number.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// Whether its turn may come at all.
    #[must_use]
    pub fn may_lead(self) -> bool {
        self > Self::NEVER
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(1)
    }
}

impl FromStr for Priority {
    type Err = PriorityError;

    fn from_str(text: &str) -> Result<Self, PriorityError> {
        Self::new(text.parse().map_err(PriorityError::NoNumber)?)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A priority was outside 0 ..= 1,000.
///
/// Effect on authority: none; nothing was started.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PriorityError {
    /// It is no number below 65,536.
    NoNumber(ParseIntError),
    /// It is above 1,000.
    TooHigh(u16),
}

impl fmt::Display for PriorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = "a priority is a number from 0 (never) to 1000";
        match self {
            Self::NoNumber(error) => write!(f, "{range}: {error}"),
            Self::TooHigh(number) => write!(f, "{range}, and {number} is above"),
        }
    }
}

impl std::error::Error for PriorityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoNumber(error) => Some(error),
            Self::TooHigh(_) => None,
        }
    }
}
