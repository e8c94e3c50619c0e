//! The store's clock: the machine's time since boot, as every process of this kernel reads it.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs;
use std::io::ErrorKind;
use tenure_core::{Fault, Moment, StoreError};

const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";
const TIME_OFFSETS_FILE: &str = "/proc/self/timens_offsets";
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// `CLOCK_BOOTTIME` of the initial time namespace, and the boot it counts from.
///
/// A wall-clock jump does not move it, it goes on while the machine sleeps, and all processes of one kernel
/// read the same, containers with a time namespace of their own included: the offset of that namespace is
/// taken off. Numbers of two boots have nothing to do with each other; hence the boot id.
pub(crate) struct BootClock {
    boot_id: Box<str>,
    namespace_offset_ns: i64,
}

/// One reading of the clock: which boot, and when in it.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) boot_id: &'a str,
    pub(crate) now: Moment,
}

impl BootClock {
    /// Reads what does not change while a process lives: the boot id and the time namespace.
    pub(crate) fn start() -> Result<Self, StoreError> {
        let boot_id = fs::read_to_string(BOOT_ID_FILE).map_err(|error| {
            unsupported(format!(
                "cannot read {BOOT_ID_FILE}: {error}; mount /proc, it tells reboots apart"
            ))
        })?;
        let boot_id = boot_id.trim();
        if boot_id.is_empty() {
            return Err(unsupported(format!(
                "{BOOT_ID_FILE} is empty; leases cannot tell reboots apart here"
            )));
        }
        Ok(Self {
            boot_id: boot_id.into(),
            namespace_offset_ns: namespace_offset_ns()?,
        })
    }

    /// The reading of this moment.
    pub(crate) fn read(&self) -> Reading<'_> {
        let time = nanoseconds(clock_gettime(ClockId::Boottime));
        let since_boot = time.saturating_sub(self.namespace_offset_ns);
        Reading {
            boot_id: &self.boot_id,
            now: Moment::from_nanos(u64::try_from(since_boot).unwrap_or(0)),
        }
    }

    /// What this process's time namespace adds to the clock, in nanoseconds.
    pub(crate) fn namespace_offset_ns(&self) -> i64 {
        self.namespace_offset_ns
    }
}

/// The wall clock in milliseconds: the floor of a new token, and nothing else.
///
/// It decides nothing about who holds a lease. A clock set back only means that tokens count on by one.
pub(crate) fn wall_clock_ms() -> u64 {
    let time = nanoseconds(clock_gettime(ClockId::Realtime));
    u64::try_from(time / 1_000_000).unwrap_or(0)
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec
        .saturating_mul(NANOS_PER_SECOND)
        .saturating_add(time.tv_nsec)
}

/// The offset that this process's time namespace puts on `CLOCK_BOOTTIME`; zero on kernels without them.
fn namespace_offset_ns() -> Result<i64, StoreError> {
    let offsets = match fs::read_to_string(TIME_OFFSETS_FILE) {
        Ok(offsets) => offsets,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        // Taken for none, an offset would end every lease of the others at once.
        Err(error) => {
            return Err(unsupported(format!(
                "cannot read {TIME_OFFSETS_FILE}: {error}; without it nobody knows how far this process's clock is from \
                 that of others: let this process read it"
            )));
        }
    };
    // The file tells the offsets of the namespace that *children* get. It is ours too unless this process
    // itself asked for a new one, and then nobody can tell ours.
    let own = fs::read_link("/proc/self/ns/time").ok();
    let of_children = fs::read_link("/proc/self/ns/time_for_children").ok();
    if own != of_children {
        return Err(unsupported(
            "this process has unshared its time namespace without entering it, so its offset cannot be \
             known; open the store in a child process instead"
                .to_owned(),
        ));
    }
    boottime_offset_ns(&offsets)
        .ok_or_else(|| unsupported(format!("cannot understand {TIME_OFFSETS_FILE}: {offsets:?}")))
}

fn boottime_offset_ns(offsets: &str) -> Option<i64> {
    let mut fields = offsets
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .find(|fields| matches!(fields.first(), Some(&"boottime" | &"7")))?
        .into_iter()
        .skip(1);
    let seconds: i64 = fields.next()?.parse().ok()?;
    let nanos: i64 = fields.next()?.parse().ok()?;
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos)
}

fn unsupported(message: String) -> StoreError {
    StoreError::not_applied(Fault::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_understood() {
        let plain = "monotonic           0         0\nboottime            0         0\n";
        let shifted = "monotonic      -86400         0\nboottime         604800 500000000\n";
        assert_eq!(boottime_offset_ns(plain), Some(0));
        assert_eq!(boottime_offset_ns(shifted), Some(604_800_500_000_000));
        assert_eq!(boottime_offset_ns("boottime -1 250000000"), Some(-750_000_000));
        assert_eq!(boottime_offset_ns("monotonic 0 0"), None);
        assert_eq!(boottime_offset_ns("boottime x 0"), None);
    }

    #[test]
    fn the_clock_never_goes_back() {
        let clock = BootClock::start().unwrap();
        let first = clock.read().now;
        let second = clock.read().now;
        assert!(second >= first);
    }
}
