use rustix::time::{ClockId, clock_gettime};
use tenure_core::{Clock, Moment};

/// `CLOCK_BOOTTIME`: monotonic, and it goes on while the machine sleeps. Versions of records are timed on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Moment {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
        Moment::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
    }
}
