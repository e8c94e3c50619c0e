//! The last resort: a thread that kills the group before the lease can pass to another.

use super::group::Group;
use crate::exit::{Code, Failure};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::process::Signal;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tenure::core::Moment;
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

/// Kills a group with SIGKILL a margin before the deadline of a term, unless renewals move that deadline.
///
/// It depends on no runtime, writes nothing and waits for nobody: a supervisor that is held up, by a
/// terminal that nobody reads for one, cannot keep the group alive. Dropping it disarms it.
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
        group: Arc<Group>,
        margin: Duration,
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
        let thread = std::thread::Builder::new()
            .name("tenure deadline".to_owned())
            .spawn(move || watch(&term, &group, margin, &timer, &seen))
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

fn watch(leadership: &Leadership, group: &Group, margin: Duration, timer: &OwnedFd, disarm: &OwnedFd) {
    loop {
        let at = leadership.until().before(margin);
        if clock_now() >= at {
            group.signal(Signal::KILL);
            return;
        }
        let mut waiting = [
            PollFd::new(timer, PollFlags::IN),
            PollFd::new(disarm, PollFlags::IN),
        ];
        let limit = match set(timer, at) {
            Ok(()) => None,
            Err(_) => Timespec::try_from(at.since(clock_now())).ok(),
        };
        // An interrupted wait is a look more, and nothing worse.
        let _ = poll(&mut waiting, limit.as_ref());
        if waiting[1].revents().contains(PollFlags::IN) {
            return;
        }
    }
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
