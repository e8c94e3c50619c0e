//! Virtual time, in the place of the product's clock: it moves when its keeper, a task like any other, has
//! its turn.
//!
//! A scenario chooses the [`Pace`]: time that runs while others are at work shows what a late thread does,
//! time that stands still then lets a scenario say how soon something must happen.

use crate::sync::point;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::TaskId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tenure_core::Moment;

/// When time moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// Only when nothing else can: whoever can act acts at once.
    Patient,
    /// Whenever its keeper is chosen, with this chance of one in so many: anybody may be late by any time.
    Hasty(u32),
}

/// Virtual time after which a scenario counts as stuck.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Where virtual time begins; some time after boot.
const BEGIN: Moment = Moment::from_nanos(1_000_000_000_000);

/// What a timer is found by.
type TimerKey = (Moment, u64);

struct Timeline {
    pace: Pace,
    now: Moment,
    timers: BTreeMap<TimerKey, Waker>,
    next_timer: u64,
    keeper: Option<Waker>,
}

thread_local! {
    // All tasks of an execution are coroutines of one system thread, so this is shared by them all.
    static TIMELINE: RefCell<Timeline> = const { RefCell::new(Timeline::new(Pace::Patient)) };
    static PATIENT_KEEPER: Cell<Option<TaskId>> = const { Cell::new(None) };
}

impl Timeline {
    const fn new(pace: Pace) -> Self {
        Self {
            pace,
            now: BEGIN,
            timers: BTreeMap::new(),
            next_timer: 0,
            keeper: None,
        }
    }
}

fn with<T>(look: impl FnOnce(&mut Timeline) -> T) -> T {
    TIMELINE.with_borrow_mut(look)
}

/// Sets time back to its beginning and starts its keeper: once in each execution, before anything else.
pub(crate) fn begin(pace: Pace) {
    drop(with(|timeline| std::mem::replace(timeline, Timeline::new(pace))));
    // Dropping its handle detaches it: an execution does not wait for the keeper to end.
    drop(shuttle::future::spawn(keep()));
}

/// From now on time moves only when nothing else can.
pub(crate) fn calm() {
    with(|timeline| timeline.pace = Pace::Patient);
}

/// As in the product: now. Another may go first.
pub(crate) fn now() -> Moment {
    point();
    peek()
}

/// Now, without letting anybody go first: for checks.
pub(crate) fn peek() -> Moment {
    with(|timeline| timeline.now)
}

/// Forgets the keeper of an earlier execution.
pub(crate) fn forget_keeper() {
    PATIENT_KEEPER.set(None);
}

/// The keeper, where it must let everybody else go first.
pub(crate) fn patient_keeper() -> Option<TaskId> {
    PATIENT_KEEPER.get()
}

async fn keep() {
    loop {
        if with(|timeline| timeline.pace) == Pace::Patient {
            PATIENT_KEEPER.set(shuttle::current::get_current_task());
        }
        std::future::poll_fn(|context| {
            with(|timeline| {
                if timeline.timers.is_empty() {
                    // Nobody waits for time: if nobody can move either, that is a deadlock, and shuttle says
                    // so.
                    timeline.keeper = Some(context.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
        })
        .await;
        // A patient keeper is chosen after this when nobody else can be; see `Paced`.
        shuttle::future::yield_now().await;
        let pace = with(|timeline| timeline.pace);
        if let Pace::Hasty(one_in) = pace
            && !thread_rng().gen_ratio(1, one_in)
        {
            continue;
        }
        advance(pace);
    }
}

/// Moves time to the next timer; a hasty one also to before it, or well past it.
fn advance(pace: Pace) {
    let choice = match pace {
        Pace::Patient => 0,
        Pace::Hasty(_) => thread_rng().gen_range(0..8),
    };
    let target = with(|timeline| {
        let ((next, _), _) = timeline.timers.first_key_value()?;
        let left = next.since(timeline.now);
        Some(match choice {
            1 => timeline.now.after(left / 2),
            2 => next.after(Duration::from_millis(40)),
            3 => next.after(Duration::from_millis(400)),
            _ => *next,
        })
    });
    if let Some(target) = target {
        pass(target);
    }
    assert!(
        peek() < BEGIN.after(PATIENCE),
        "nothing comes to its end: {PATIENCE:?} have passed"
    );
}

/// It is as late as that from now on, whatever else anybody was about to do.
pub(crate) fn pass(moment: Moment) {
    let due = with(|timeline| {
        timeline.now = timeline.now.max(moment);
        let later = timeline.timers.split_off(&(timeline.now, u64::MAX));
        std::mem::replace(&mut timeline.timers, later)
    });
    due.into_values().for_each(Waker::wake);
}

/// Ready at a moment.
#[must_use]
pub(crate) struct Sleep {
    at: Moment,
    key: Option<TimerKey>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        let (key, keeper) = with(|timeline| {
            if timeline.now >= at {
                return (None, None);
            }
            let key = self.key.unwrap_or_else(|| {
                timeline.next_timer += 1;
                (at, timeline.next_timer)
            });
            timeline.timers.insert(key, context.waker().clone());
            (Some(key), timeline.keeper.take())
        });
        self.key = key;
        if let Some(keeper) = keeper {
            keeper.wake();
        }
        if key.is_some() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            drop(with(|timeline| timeline.timers.remove(&key)));
        }
    }
}

pub(crate) fn sleep_until(at: Moment) -> Sleep {
    Sleep { at, key: None }
}

/// As tokio's.
pub(crate) fn sleep(duration: Duration) -> Sleep {
    sleep_until(now().after(duration))
}

/// It was not ready in time.
#[derive(Debug)]
pub(crate) struct Elapsed;

/// As tokio's.
pub(crate) async fn timeout<T>(limit: Duration, future: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut future = pin!(future);
    let mut limit = pin!(sleep(limit));
    std::future::poll_fn(|context| {
        if let Poll::Ready(outcome) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(outcome));
        }
        limit.as_mut().poll(context).map(|()| Err(Elapsed))
    })
    .await
}

/// As in the product: a timer on the clock of [`now`].
#[derive(Debug)]
pub(crate) struct BootTimer;

impl BootTimer {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) async fn wait_until(&self, at: Moment) {
        point();
        sleep_until(at).await;
    }
}
