//! Who takes the driver's steps: its thread, or whoever asks it for something and finds nobody at it.
//!
//! A store that is a file answers within the call. To wake a thread for that, and to be woken by it, would
//! take as long again; so whoever asks takes the next step where they are, and the thread those that nobody
//! asks for.

use crate::clock;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Surroundings};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Longest step that whoever asks is to take: beside a longer one the way to the thread costs little, and
/// they may have other things to do.
const STEP_MAX: Duration = Duration::from_millis(1);

/// How many are left to the thread after a longer one: one at first, and with each further one four times as
/// many, up to this.
const LEFT_MAX: u64 = 64;

/// How often whoever asks looks again, if something has happened meanwhile.
const LOOKS_MAX: usize = 4;

/// Of how many things that have happened whoever asks takes care: what they ask for and its answer are two.
/// As long as others ask meanwhile there is always one more, and they would drive for all.
const HAPPENINGS_MAX: u64 = 8;

pub(super) type Driving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where one at a time drives.
pub(super) struct Helm {
    /// `None` before the driver begins, and when it has ended.
    seat: Mutex<Option<Seat>>,
    signal: Arc<Signal>,
    waker: Waker,
    /// How many of those who ask are still to leave it to the thread.
    left: AtomicU64,
    allowance: Allowance,
}

/// Of how many things that have happened the driver may still take care in this step. The thread's steps have
/// no bound.
#[derive(Clone)]
pub(super) struct Allowance(Arc<AtomicU64>);

/// An [`Allowance`] without a bound.
const NO_BOUND: u64 = u64::MAX;

impl Allowance {
    pub(super) fn without_bound() -> Self {
        Self(Arc::new(AtomicU64::new(NO_BOUND)))
    }

    /// Waits for the next step, if there is nothing left in this one.
    pub(super) async fn spend(&self) {
        // Only who is at the helm looks at it, and changes it.
        poll_fn(|context| match self.0.load(Ordering::SeqCst) {
            NO_BOUND => Poll::Ready(()),
            0 => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            left => {
                self.set(left - 1);
                Poll::Ready(())
            }
        })
        .await;
    }

    fn set(&self, happenings: u64) {
        self.0.store(happenings, Ordering::SeqCst);
    }

    fn is_spent(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

struct Seat {
    driving: Driving,
    /// The thread's: timers and tasks of the driver are there, whoever takes a step.
    surroundings: Surroundings,
    /// How many to leave to the thread after the next longer step.
    leave: u64,
}

impl Seat {
    /// How many are to be left to the thread after a step that took so long.
    fn left_after(&mut self, took: Duration) -> u64 {
        if took <= STEP_MAX {
            self.leave = 1;
            return 0;
        }
        let next = (4 * self.leave).min(LEFT_MAX);
        std::mem::replace(&mut self.leave, next)
    }
}

/// Tells whoever drives that there is something to do.
struct Signal {
    /// Something has happened since the last step began.
    is_due: AtomicBool,
    /// Somebody who asked is at the helm, and will look again before they go.
    is_taken: AtomicBool,
    thread: Mutex<Option<Waker>>,
}

impl Helm {
    pub(super) fn new(allowance: Allowance) -> Arc<Self> {
        let signal = Arc::new(Signal {
            is_due: AtomicBool::new(false),
            is_taken: AtomicBool::new(false),
            thread: Mutex::new(None),
        });
        Arc::new(Self {
            seat: Mutex::new(None),
            waker: Waker::from(signal.clone()),
            signal,
            left: AtomicU64::new(0),
            allowance,
        })
    }

    /// Drives on this thread, whenever nobody else does, until the driver has ended.
    pub(super) async fn drive(self: Arc<Self>, driving: Driving) {
        let surroundings = Surroundings::here();
        if let Ok(mut seat) = self.seat.lock() {
            *seat = Some(Seat {
                driving,
                surroundings,
                leave: 1,
            });
        }
        poll_fn(|context| self.drive_on(context)).await;
    }

    fn drive_on(&self, context: &Context<'_>) -> Poll<()> {
        self.signal.keep(context.waker());
        // Before the look at the seat: whoever leaves it looks at this afterwards.
        self.signal.is_due.store(true, Ordering::SeqCst);
        match self.seat.try_lock() {
            Ok(mut seat) => self.step(&mut seat),
            Err(_) => Poll::Pending,
        }
    }

    /// Has `ask` tell the driver something, and takes its next step here, unless somebody else drives.
    pub(super) fn step_with<T>(&self, ask: impl FnOnce() -> T) -> T {
        if self.is_left_to_the_thread() {
            return ask();
        }
        let Ok(mut seat) = self.seat.try_lock() else {
            return ask();
        };
        if seat.is_none() {
            return ask();
        }
        self.signal.is_taken.store(true, Ordering::SeqCst);
        self.allowance.set(HAPPENINGS_MAX);
        let (asked, began) = (ask(), clock::now());
        for _look in 0..LOOKS_MAX {
            let is_over = self.allowance.is_spent() || !self.signal.is_due.load(Ordering::SeqCst);
            if is_over || self.step(&mut seat).is_ready() {
                break;
            }
        }
        self.allowance.set(NO_BOUND);
        let took = clock::now().since(began);
        let has_ended = match &mut *seat {
            Some(seat) => {
                self.left.store(seat.left_after(took), Ordering::SeqCst);
                false
            }
            None => true,
        };
        self.signal.is_taken.store(false, Ordering::SeqCst);
        drop(seat);
        // What has happened since the last look, and was left to whoever is at the helm.
        if has_ended || self.signal.is_due.load(Ordering::SeqCst) {
            self.signal.wake_thread();
        }
        asked
    }

    fn is_left_to_the_thread(&self) -> bool {
        let one_less = |left: u64| left.checked_sub(1);
        let counted = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        counted.is_ok()
    }

    fn step(&self, seat: &mut Option<Seat>) -> Poll<()> {
        let Some(Seat {
            driving,
            surroundings,
            ..
        }) = seat
        else {
            return Poll::Ready(());
        };
        let surroundings = surroundings.clone();
        let _inside = surroundings.enter();
        self.signal.is_due.store(false, Ordering::SeqCst);
        let mut context = Context::from_waker(&self.waker);
        // A panic ends the driver and nobody else: whoever took the step learns that it has stopped.
        let step = catch_unwind(AssertUnwindSafe(|| driving.as_mut().poll(&mut context)));
        if matches!(step, Ok(Poll::Pending)) {
            return Poll::Pending;
        }
        *seat = None;
        Poll::Ready(())
    }
}

impl Signal {
    fn keep(&self, waker: &Waker) {
        if let Ok(mut thread) = self.thread.lock()
            && !thread.as_ref().is_some_and(|kept| kept.will_wake(waker))
        {
            *thread = Some(waker.clone());
        }
    }

    fn wake_thread(&self) {
        let thread = self.thread.lock().ok().and_then(|thread| thread.clone());
        if let Some(thread) = thread {
            thread.wake();
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // In this order: whoever leaves the helm says so before they look at what is due.
        self.is_due.store(true, Ordering::SeqCst);
        if !self.is_taken.load(Ordering::SeqCst) {
            self.wake_thread();
        }
    }
}
