//! The clocks that matter here: this machine's, and that of the stream's leader.

use rustix::time::{ClockId, clock_gettime};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{Clock, Moment, StoreError};

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

/// How long after it was asked for a reading of the leader's clock is carried on.
const CARRIED_ON_FOR: Duration = Duration::from_secs(1);

/// How old a reading may be by which a looker is told ages.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The clock of the stream's leader, carried on for a second from each reading: the leader looks through the
/// whole stream to tell it, and a lock that is taken a thousand times a second need not ask a thousand times.
///
/// Only a floor for tokens, which rise by counting for as long as the record lives. It is behind the leader's
/// clock by the reading's way back and a second's error of this machine's clock at most, far less than a
/// stream takes to be lost and made again; and ahead of it only where that clock itself runs slow, is set
/// back, or is another leader's by then. Ages, which decide nothing, are told by it as well, and by an older
/// reading.
#[derive(Clone, Debug)]
pub(crate) struct LeaderClock {
    rate_error_ppm: u32,
    last: Arc<Mutex<Option<Told>>>,
    /// The latest of all readings, also of those that nobody has asked for a floor: for ages.
    latest: Arc<Mutex<Option<Told>>>,
}

/// A reading, by this machine's clock.
#[derive(Clone, Copy, Debug)]
struct Told {
    asked_at: Moment,
    came_at: Moment,
    milliseconds: u64,
}

impl LeaderClock {
    pub(crate) fn new(rate_error_ppm: u32) -> Self {
        Self {
            rate_error_ppm,
            last: Arc::default(),
            latest: Arc::default(),
        }
    }

    /// What the leader's clock shows at least, in milliseconds; `ask` reads it where the last reading is too
    /// old.
    ///
    /// # Errors
    /// Of `ask`.
    pub(crate) async fn at_least(
        &self,
        ask: impl Future<Output = Result<u64, StoreError>>,
    ) -> Result<u64, StoreError> {
        let asked_at = BootClock.now();
        let last = *held(&self.last);
        if let Some(told) = last.and_then(|told| told.carried_on(asked_at, self.rate_error_ppm)) {
            return Ok(told);
        }
        let milliseconds = ask.await?;
        let told = Told {
            asked_at,
            came_at: BootClock.now(),
            milliseconds,
        };
        *held(&self.last) = Some(told);
        *held(&self.latest) = Some(told);
        Ok(milliseconds)
    }

    /// Takes in what it has just shown. No floor: for that, whoever takes a lease asks.
    pub(crate) fn has_shown(&self, milliseconds: u64) {
        let now = BootClock.now();
        *held(&self.latest) = Some(Told {
            asked_at: now,
            came_at: now,
            milliseconds,
        });
    }

    /// Reads it by `ask` where the latest reading is so old that ages would be wrong by what people see. Who
    /// cannot read it now carries on the latest.
    pub(crate) async fn keep(&self, ask: impl Future<Output = Result<u64, StoreError>>) {
        let (now, latest) = (BootClock.now(), *held(&self.latest));
        if latest.is_none_or(|told| now.since(told.came_at) >= READ_AGAIN_AFTER)
            && let Ok(milliseconds) = ask.await
        {
            self.has_shown(milliseconds);
        }
    }

    /// What it shows now in milliseconds, for ages: by the latest reading, whatever its age. `None` before
    /// the first.
    pub(crate) fn about_now_ms(&self) -> Option<u64> {
        let latest = *held(&self.latest);
        latest?.at(BootClock.now(), self.rate_error_ppm)
    }
}

fn held(reading: &Mutex<Option<Told>>) -> MutexGuard<'_, Option<Told>> {
    reading.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Told {
    fn carried_on(self, now: Moment, rate_error_ppm: u32) -> Option<u64> {
        if now.since(self.asked_at) >= CARRIED_ON_FOR {
            return None;
        }
        self.at(now, rate_error_ppm)
    }

    fn at(self, now: Moment, rate_error_ppm: u32) -> Option<u64> {
        let passed = now.since(self.came_at).as_nanos();
        let too_fast = (passed * u128::from(rate_error_ppm)).div_ceil(1_000_000);
        let passed_ms = u64::try_from(passed.saturating_sub(too_fast) / 1_000_000).ok()?;
        Some(self.milliseconds.saturating_add(passed_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::{CARRIED_ON_FOR, Told};
    use std::time::Duration;
    use tenure_core::Moment;

    #[test]
    fn the_leaders_clock_is_carried_on_for_a_second_and_never_ahead_of_itself() {
        let told = Told {
            asked_at: Moment::from_millis(5_000),
            came_at: Moment::from_millis(5_200),
            milliseconds: 77_000,
        };
        let after = |milliseconds: u64| told.carried_on(Moment::from_millis(5_000 + milliseconds), 100_000);
        assert_eq!(after(200), Some(77_000));
        // A clock that is a tenth too fast has counted 500 ms where 450 have passed.
        assert_eq!(after(700), Some(77_450));
        assert_eq!(after(999), Some(77_719));
        // From when it was asked for: what comes late is good for less.
        assert_eq!(after(1_000), None);
        let late = Told {
            came_at: told.asked_at.after(CARRIED_ON_FOR),
            ..told
        };
        assert_eq!(
            late.carried_on(late.came_at.after(Duration::from_nanos(1)), 0),
            None
        );
    }
}
