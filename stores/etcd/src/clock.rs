//! The clock that sessions are counted on.

use rustix::time::{ClockId, clock_gettime};
use tenure_core::Moment;

/// Now, on `CLOCK_BOOTTIME`: it goes on while the machine sleeps, as the server's does.
pub(crate) fn now() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    Moment::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
}
