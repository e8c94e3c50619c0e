//! The last resort: a thread that tells the warden how long the work may live, and kills before the lease can
//! pass to another.

use super::work::{Orders, limit_of};
use crate::exit::{Code, Failure};
use crate::warden::{Limit, Order};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tenure::contract::Moment;
use tenure::{Leadership, Timing, clock_now};

/// Shortest time between SIGKILL and the deadline: what a scheduler on a loaded machine may be late by, and
/// a process may need to die.
const KILL_MARGIN_MIN: Duration = Duration::from_millis(100);

/// With a longer ttl there is room for more: a fiftieth of it.
const KILL_MARGIN_PART: u32 = 50;

/// With a short grace the command must still have half of it after SIGTERM.
const KILL_MARGIN_PART_OF_GRACE: u32 = 2;

/// How long before the deadline of a term the group gets SIGKILL: 100 ms or a fiftieth of the ttl, whichever
/// is longer, but at most half of the grace.
pub(crate) fn kill_margin(timing: &Timing) -> Duration {
    let margin = (timing.ttl().duration() / KILL_MARGIN_PART).max(KILL_MARGIN_MIN);
    margin.min(timing.grace() / KILL_MARGIN_PART_OF_GRACE)
}

/// How much of the margin is left when the warden is taken for frozen, and the work is killed past it.
const LAST_PART: u32 = 2;

/// How often the work is killed then, until it is known to be gone.
const KILL_EVERY: Duration = Duration::from_millis(20);

/// How often in a renewal interval the end of the term is looked at and told.
const TELL_PART: u32 = 2;

/// How much of the time until the work is killed passes at most until the next look: a renewal in the last
/// moment, which has saved the term, is told long before the warden would kill.
const LOOK_PART: u32 = 2;

/// The shortest time between two such looks: no renewal comes so late.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(20);

/// Tells the warden of every renewal, and has it kill the work a margin before the deadline of the term; in
/// the last part of the margin kills it past the warden.
///
/// It depends on no runtime, writes nothing for people and waits for nobody: a supervisor that is held up, by
/// a terminal that nobody reads for one, cannot keep the work alive, and does not end it either. Dropping it
/// disarms it.
pub(super) struct Deadline {
    disarm: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Deadline {
    /// Arms it.
    ///
    /// # Errors
    /// No file descriptor or thread is left.
    pub(super) fn arm(
        leadership: Arc<Leadership>,
        orders: Arc<Orders>,
        timing: &Timing,
    ) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            let name = leadership.name();
            Failure::new(
                Code::Internal,
                format!(
                    "lease \"{name}\": the command cannot be watched: {error}; raise the limits of this user"
                ),
            )
        };
        let disarm = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let seen = disarm.try_clone().map_err(failed)?;
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)
            .map_err(|error| failed(error.into()))?;
        let term = Arc::clone(&leadership);
        let (margin, every) = (kill_margin(timing), timing.renew_every() / TELL_PART);
        let thread = std::thread::Builder::new()
            .name("tenure deadline".to_owned())
            .spawn(move || watch(&term, &orders, [margin, every], &timer, &seen))
            .map_err(failed)?;
        Ok(Self {
            disarm,
            thread: Some(thread),
        })
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        // Eight bytes into an empty counter: it takes them at once.
        let _ = rustix::io::write(&self.disarm, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(
    leadership: &Leadership,
    orders: &Orders,
    [margin, every]: [Duration; 2],
    timer: &OwnedFd,
    disarm: &OwnedFd,
) {
    let mut told: Option<Limit> = None;
    loop {
        let now = clock_now();
        let until = end_of(leadership.until(), told.map(|told| told.until), now);
        let limit = limit_of(until, margin);
        if told != Some(limit) {
            orders.give(Order::Until(limit));
            told = Some(limit);
        }
        let last = limit.until.before(margin / LAST_PART);
        let next = if now < limit.kill_at {
            next_look(now, limit.kill_at, every)
        } else if now < last {
            orders.give(Order::Kill);
            last
        } else {
            orders.give(Order::Kill);
            orders.kill_past_warden();
            now.after(KILL_EVERY)
        };
        let mut waiting = [
            PollFd::new(timer, PollFlags::IN),
            PollFd::new(disarm, PollFlags::IN),
        ];
        let limit = match set(timer, next) {
            Ok(()) => None,
            Err(_) => Timespec::try_from(next.since(clock_now())).ok(),
        };
        // An interrupted wait is a look more, and nothing worse.
        let _ = poll(&mut waiting, limit.as_ref());
        if waiting[1].revents().contains(PollFlags::IN) {
            return;
        }
    }
}

/// When a term ends that says so itself: one that was ended, as by another's, no longer does. It has ended
/// `now`, or when that was told; the time in which this process is to see the work gone is counted from
/// there.
fn end_of(until: Moment, told: Option<Moment>, now: Moment) -> Moment {
    match until > Moment::ZERO {
        true => until,
        false => told.map_or(now, |told| told.min(now)),
    }
}

/// When to look again whether the term was extended: `every` so often, and ever sooner as `kill_at` comes
/// near.
fn next_look(now: Moment, kill_at: Moment, every: Duration) -> Moment {
    let part = kill_at.since(now) / LOOK_PART;
    kill_at.min(now.after(every.min(part.max(LOOK_EVERY_MIN))))
}

fn set(timer: &OwnedFd, at: Moment) -> rustix::io::Result<()> {
    let time =
        Timespec::try_from(Duration::from_nanos(at.as_nanos())).map_err(|_| rustix::io::Errno::INVAL)?;
    let setting = Itimerspec {
        it_interval: Timespec::default(),
        it_value: time,
    };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &setting).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::TimingOptions;

    /// A shorter one is over before a loaded machine has killed, and a longer one leaves nothing of the
    /// grace.
    #[test]
    fn the_margin_before_the_end_grows_with_the_ttl_and_leaves_half_of_the_grace() {
        for (ttl, grace, margin) in [
            (4_000, 1_000, 100),
            (20_000, 5_000, 400),
            (20_000, 300, 150),
            (4_000, 100, 50),
        ] {
            let [ttl, grace, margin] = [ttl, grace, margin].map(Duration::from_millis);
            let options = TimingOptions {
                grace: Some(grace),
                ..TimingOptions::new(ttl)
            };
            assert_eq!(
                kill_margin(&options.check().unwrap()),
                margin,
                "{ttl:?} {grace:?}"
            );
        }
    }

    /// Else its warden would not wait a moment for this process to see the work gone.
    #[test]
    fn a_term_that_was_ended_by_force_has_ended_when_that_was_seen() {
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let (now, later) = (at(40), at(41));
        assert_eq!(end_of(at(60), None, now), at(60));
        assert_eq!(end_of(at(70), Some(at(60)), now), at(70), "a renewal");
        for told in [None, Some(at(60))] {
            let end = end_of(Moment::ZERO, told, now);
            assert_eq!(end, now, "long before its deadline");
            assert_eq!(end_of(Moment::ZERO, Some(end), later), end, "seen once more");
        }
        assert_eq!(
            end_of(Moment::ZERO, Some(at(30)), now),
            at(30),
            "its deadline had passed"
        );
    }

    /// Wherever the looks fall: half of the time that a renewal has left is enough to tell of it.
    #[test]
    fn a_renewal_is_seen_before_half_of_its_time_is_over() {
        let at = |milliseconds: u64| Moment::from_nanos(milliseconds * 1_000_000);
        let kill_at = at(11_760);
        for first in 0..2_400 {
            let mut looks = vec![at(first)];
            while looks.last() < Some(&kill_at) {
                looks.push(next_look(
                    looks[looks.len() - 1],
                    kill_at,
                    Duration::from_millis(2_400),
                ));
            }
            for renewed in (2_400..11_700).step_by(50) {
                let seen = looks.iter().find(|look| **look >= at(renewed)).unwrap();
                let left = kill_at.since(at(renewed));
                assert!(kill_at.since(*seen) >= left / 2, "{first} {renewed}");
            }
        }
    }
}
