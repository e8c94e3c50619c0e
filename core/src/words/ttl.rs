use std::fmt;
use std::time::Duration;

/// How long a lease lasts from its last renewal.
///
/// Unit: whole milliseconds. Range: 100 ms ..= 24 h; a store may narrow it
/// ([`StoreTraits::ttl_min`](crate::StoreTraits)). Longer: fewer requests and more outage tolerated, slower
/// take-over after a crash. Shorter: the reverse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(u32);

/// A duration that cannot be a ttl.
///
/// Effect on authority: none; nothing was started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TtlError {
    /// The refused duration.
    pub asked: Duration,
}

impl fmt::Display for TtlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ttl {:?} is outside 100ms to 24h; 30s suits most jobs",
            self.asked
        )
    }
}

impl std::error::Error for TtlError {}

impl Ttl {
    /// Shortest ttl: 100 ms. Below it, the pauses of an ordinary scheduler end leases.
    pub const MIN: Self = Self(100);
    /// Longest ttl: 24 h. Above it, a crash is an outage of a day.
    pub const MAX: Self = Self(24 * 60 * 60 * 1000);

    /// How much longer than its ttl a lease may last by its record: a day, as the store's clock may have been
    /// set back since. A record that says more is a slip, which would keep everybody out for as long, and is
    /// unreadable; but not to the process that holds it, whose next request puts it right.
    pub const BEYOND_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// The ttl of this many milliseconds.
    ///
    /// # Errors
    /// [`TtlError`] outside 100 ..= 86,400,000.
    pub fn from_millis(milliseconds: u64) -> Result<Self, TtlError> {
        match u32::try_from(milliseconds) {
            Ok(ms) if (Self::MIN.0..=Self::MAX.0).contains(&ms) => Ok(Self(ms)),
            _ => Err(TtlError {
                asked: Duration::from_millis(milliseconds),
            }),
        }
    }

    /// The ttl of this many seconds.
    ///
    /// # Errors
    /// [`TtlError`] outside 1 ..= 86,400.
    pub fn from_secs(seconds: u64) -> Result<Self, TtlError> {
        Self::from_millis(seconds.saturating_mul(1000))
    }

    /// Whole milliseconds.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        u64::from(self.0)
    }

    /// Whether so much can be left of a lease with this ttl; see [`BEYOND_MAX`](Self::BEYOND_MAX).
    #[must_use]
    pub fn may_leave(self, remaining: Duration) -> bool {
        remaining <= self.duration() + Self::BEYOND_MAX
    }

    /// As a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(u64::from(self.0))
    }
}

impl TryFrom<Duration> for Ttl {
    type Error = TtlError;

    /// Cuts below the millisecond: a lease must never be believed longer than it was asked.
    fn try_from(duration: Duration) -> Result<Self, TtlError> {
        u64::try_from(duration.as_millis())
            .map_err(|_| TtlError { asked: duration })
            .and_then(|ms| Self::from_millis(ms).map_err(|_| TtlError { asked: duration }))
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.duration())
    }
}

impl fmt::Debug for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ttl({:?})", self.duration())
    }
}
