//! The clock that terms are counted on, and a timer that fires by it.

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::Moment;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[cfg(not(target_os = "linux"))]
compile_error!("tenure counts terms on CLOCK_BOOTTIME, which Linux has");

/// Now, on `CLOCK_BOOTTIME`: monotonic, and it goes on while the machine sleeps.
///
/// `std::time::Instant` is `CLOCK_MONOTONIC`, which stands still then: a leader would wake up and still
/// believe in a lease that ended hours ago.
#[must_use]
pub fn now() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).expect("the time since boot is not negative");
    let nanoseconds = u64::try_from(time.tv_nsec).expect("nanoseconds are not negative");
    Moment::from_nanos(seconds * 1_000_000_000 + nanoseconds)
}

/// Returns at `at`, or at once if that has passed, on the clock of [`now`]: what was to happen while the
/// machine slept happens as it wakes. May be dropped at any time.
///
/// Needs a tokio runtime with its I/O and time drivers, and one file descriptor; without one left it may
/// return up to 250 ms late after the machine has slept.
pub async fn sleep_until(at: Moment) {
    BootTimer::new().wait_until(at).await;
}

/// A timer on the clock of [`now`]: one that was to fire while the machine slept fires as it wakes.
#[derive(Debug)]
pub(crate) struct BootTimer {
    /// `None` where the process has no file descriptor left for it.
    descriptor: Option<AsyncFd<OwnedFd>>,
    /// When it fires, in nanoseconds of the clock.
    armed: AtomicU64,
}

/// How long the fall-back of a timer sleeps at once: what a wake-up from suspend may be late by.
const FALL_BACK_SLEEP: Duration = Duration::from_millis(250);

impl BootTimer {
    /// A timer of the current tokio runtime, which needs its I/O and time drivers.
    #[allow(
        deprecated,
        reason = "its successor is unsafe for types that may give up their descriptor; OwnedFd does not"
    )]
    pub(crate) fn new() -> Self {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Boottime, flags)
            .ok()
            .and_then(|descriptor| AsyncFd::with_interest(descriptor, Interest::READABLE).ok());
        Self {
            descriptor,
            armed: AtomicU64::new(0),
        }
    }

    /// Returns at `at`, or at once if that has passed. May be dropped at any time.
    pub(crate) async fn wait_until(&self, at: Moment) {
        loop {
            let now = now();
            let left = at.since(now);
            if left.is_zero() {
                return;
            }
            match &self.descriptor {
                Some(descriptor) if self.fires_by(at, now) || self.arm(descriptor.get_ref(), at) => {
                    if let Ok(mut ready) = descriptor.readable().await {
                        // Setting the timer anew clears its count: it need not be read.
                        ready.clear_ready();
                    }
                }
                Some(_) | None => tokio::time::sleep(left.min(FALL_BACK_SLEEP)).await,
            }
        }
    }

    /// Whether it fires by then as it is. One that fires too early is armed anew, which costs less than
    /// arming it each time that what comes next comes later.
    fn fires_by(&self, at: Moment, now: Moment) -> bool {
        let armed = Moment::from_nanos(self.armed.load(Ordering::Relaxed));
        now < armed && armed <= at
    }

    fn arm(&self, descriptor: &OwnedFd, at: Moment) -> bool {
        let armed = set(descriptor, at);
        let fires_at = if armed { at.as_nanos() } else { 0 };
        self.armed.store(fires_at, Ordering::Relaxed);
        armed
    }
}

fn set(descriptor: &OwnedFd, at: Moment) -> bool {
    let nanoseconds = at.as_nanos();
    let it_value = Timespec {
        tv_sec: i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanoseconds % 1_000_000_000).expect("below a billion"),
    };
    let setting = Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value,
    };
    timerfd_settime(descriptor, TimerfdTimerFlags::ABSTIME, &setting).is_ok()
}
